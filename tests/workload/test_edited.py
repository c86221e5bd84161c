"""Source files that are edited while a run is running: no result of other code may be kept as the
result of the planned code."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrite.workload import JobState, Run, Workload
from pyrite.workload.storage.cleanup_queue import read_records
from pyrite.workload.storage.store import Store
from tests.workload.conftest import states, wait_until

ONE = "def f():\n    return 1\n"
TWO = "def f():\n    return 1 + 1\n"
CHANGED = "was changed, and the worker may have run another version"
KINDS: list[dict[str, Any]] = [{"kind": "persistent"}, {"kind": "transient"}]
MODULES = ("steps", "helper", "shapes")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working directory, with the modules, and a pipe for a job to wait at."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    os.mkfifo("gate")
    yield
    forget()


def forget() -> None:
    for name in MODULES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def write(text: str, name: str = "steps") -> None:
    Path(f"{name}.py").write_text(text)


def steps(text: str) -> ModuleType:
    """The module `steps` with this source, imported as in a new process."""
    write(text)
    forget()
    return importlib.import_module("steps")


def open_gate() -> None:
    Path("gate").write_text("")


def behind_the_gate(command: Any, **options: Any) -> Workload:
    return Workload().add("gate", ["cat", "gate"]).add("job", command, after="gate", **options)


def ran(workload: Workload, **options: Any) -> Run:
    return workload.run(store="night", workers=1, **options).wait()


@pytest.mark.parametrize("options", KINDS)
def test_code_that_is_edited_before_a_worker_loads_it_is_not_kept_as_the_old_code(
    options: dict[str, Any],
) -> None:
    run = behind_the_gate(steps(ONE).f).run(store="night", workers=1, **options)
    write(TWO)
    open_gate()
    assert run.wait().results["job"] == 2  # the worker imports what is there
    workload = behind_the_gate(steps(ONE).f)
    assert (
        workload.plan("night", only=["job"]).why("job").endswith(f"its source steps.py {CHANGED}")
    )
    assert ran(workload, only=["job"], **options).results["job"] == 1
    assert states(ran(workload, only=["job"], **options))["job"] is JobState.SKIPPED


@pytest.mark.parametrize("options", KINDS)
def test_a_module_that_a_job_imports_when_it_runs_is_compared_after_the_job(
    options: dict[str, Any],
) -> None:
    lazy = "def f():\n    open('gate').read()\n    import helper\n    return helper.VALUE\n"
    write("VALUE = 1\n", "helper")
    run = Workload().add("job", steps(lazy).f).run(store="night", workers=1, **options)
    with open("gate", "w"):  # when this is open, the job runs
        write("VALUE = 1 + 1\n", "helper")
    assert run.wait().results["job"] == 2
    write("VALUE = 1\n", "helper")
    why = Workload().add("job", steps(lazy).f).plan("night").why("job")
    assert why.endswith(f"its source helper.py {CHANGED}")


def test_what_is_edited_when_a_worker_has_loaded_it_changes_nothing() -> None:
    slow = "def f():\n    open('gate').read()\n\n\ndef g():\n    return 1\n"

    def workload() -> Workload:
        module = steps(slow)
        return Workload().add("f", module.f).add("g", module.g, after="f")

    run = workload().run(store="night", workers=1)
    with open("gate", "w"):
        write(TWO)
    run.wait()
    assert [job.action for job in workload().plan("night")] == ["skip", "skip"]


def test_constants_that_a_module_imports_and_classes_of_arguments_count() -> None:
    one, two = "class Shape:\n    SIZE = 1\n", "class Shape:\n    SIZE = 1 + 1\n"
    uses = "from helper import VALUE\n\n\ndef f(shape):\n    return VALUE\n"

    def workload() -> Workload:
        write("VALUE = 1\n", "helper")
        write(one, "shapes")
        function = steps(uses).f
        made = behind_the_gate(function, args=[importlib.import_module("shapes").Shape()])
        return made.add("other", function, args=[None], after="gate")

    run = workload().run(store="night", workers=1)
    write(two, "shapes")
    open_gate()
    run.wait()
    plan = workload().plan("night")
    assert plan.why("job").endswith(f"its source shapes.py {CHANGED}")
    assert plan[2].action == "skip"


def test_a_module_that_a_thread_imports_is_that_of_the_plan_if_it_was_not_edited_meanwhile() -> (
    None
):
    lazy = "def f():\n    import helper\n    return helper.VALUE\n"
    for value, state in ((1, JobState.DONE), (1, JobState.SKIPPED), (2, JobState.DONE)):
        write(f"VALUE = {value}  #{'!' * value}\n", "helper")
        with ThreadPoolExecutor(1) as pool:
            workload = Workload().add("job", steps(lazy).f)
            run = ran(workload, kind="transient", executor=pool)
        assert (run.results["job"], states(run)["job"]) == (value, state)


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_pool_that_has_the_planned_code_in_memory_is_not_disturbed(
    make: Callable[..., Any],
) -> None:
    workload = behind_the_gate(steps(ONE).f)
    with make(1) as pool:
        options = {"kind": "transient", "executor": pool}
        run = workload.run(store="night", workers=1, **options)
        write(TWO)
        open_gate()
        assert run.wait().results["job"] == 1
    forget()
    assert behind_the_gate(steps(ONE).f).plan("night", only=["job"])[1].action == "skip"


def test_code_that_is_edited_before_a_run_is_resumed_is_not_kept_as_the_old_code() -> None:
    run = behind_the_gate(steps(ONE).f).run(store="night", workers=1)
    wait_until(lambda: states(run)["gate"] is JobState.RUNNING, 60)
    run.cancel()
    run.wait()
    write(TWO)
    run = Run.resume("night")
    open_gate()
    assert run.wait().results["job"] == 2
    why = behind_the_gate(steps(ONE).f).plan("night", only=["job"]).why("job")
    assert why.endswith(f"its source steps.py {CHANGED}")


def test_a_result_of_edited_code_that_no_master_has_seen_is_not_kept_as_that_of_the_old_code() -> (
    None
):
    run = behind_the_gate(steps(ONE).f).run(store="night", workers=1)
    write(
        "import os, signal\n\n\ndef f():\n    os.kill(os.getppid(), signal.SIGSTOP)\n    return 2\n"
    )
    open_gate()
    assert run.pid is not None
    segment = Store("night").segment(1)
    wait_until(segment.exists, 60)
    wait_until(lambda: {record.job for record in read_records(segment)} == {0, 1}, 60)
    os.kill(run.pid, signal.SIGKILL)  # the job has stopped the master
    run.wait_for_master(60)
    why = behind_the_gate(steps(ONE).f).plan("night", only=["job"]).why("job")
    assert why.endswith(f"its source steps.py {CHANGED}")


def test_a_module_that_is_older_than_its_file_makes_no_result_of_the_old_code() -> None:
    function = steps(ONE).f
    write(TWO)  # and it is not imported again
    assert ran(Workload().add("job", function)).results["job"] == 2
    assert "edited after this process imported it" in Workload().add("job", function).plan(
        "night"
    ).why("job")
    assert ran(Workload().add("job", steps(ONE).f)).results["job"] == 1
    assert states(ran(Workload().add("job", steps(ONE).f)))["job"] is JobState.SKIPPED
