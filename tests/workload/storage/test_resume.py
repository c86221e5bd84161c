"""What a resumed run has of the process that started it, and what it must be given again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.workload import JobState, Run, Workload
from pyrite.workload.storage.store import Store
from tests.workload import commands
from tests.workload.conftest import states, wait_until

STEPS = """
import os
def f():
    open("made", "w").close()
    os.umask(old := os.umask(0))
    if not os.path.exists("go"):
        raise ValueError("not yet")
    return old, os.getcwd()
"""


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_a_resumed_run_keeps_the_working_directory_sys_path_and_umask(
    tmp_path: Path, kind: str
) -> None:
    home = tmp_path / "home"
    (home / "modules").mkdir(parents=True)
    (home / "modules" / "steps_of_a_run.py").write_text(STEPS)
    script = (
        "import os, sys; sys.path.insert(0, 'modules'); os.umask(0o027)\n"
        "from pyrite.workload import Workload\n"
        "w = Workload().add('f', 'steps_of_a_run:f').add('touch', ['touch', 'touched'])\n"
        f"w.run(kind={kind!r}, workers=1, store={str(tmp_path / 'run')!r}).wait()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=home, check=True)
    assert (home / "touched").exists()
    (home / "go").touch()
    again = Run.resume(tmp_path / "run").wait()
    assert states(again) == {"f": "DONE", "touch": "DONE"}
    assert again.results["f"] == (0o027, str(home))


def test_a_run_whose_working_directory_is_gone_is_not_resumed_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    Workload().add("job", commands.fail).run(workers=1, store=tmp_path / "run").wait()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").rmdir()
    with pytest.raises(InvalidWorkload, match=r"the working directory of this run, .* does not"):
        Run.resume(tmp_path / "run")


def my_launcher(function: Any, posts: Any) -> Any:
    return map(function, posts)


def test_a_launcher_must_be_given_again(tmp_path: Path) -> None:
    workload = Workload().add("job", commands.fail)
    workload.run(workers=1, launcher=my_launcher, store=tmp_path / "run").wait(60)
    message = "this run used launcher=my_launcher; give launcher= to resume it"
    with pytest.raises(InvalidWorkload, match=message):
        Run.resume(tmp_path / "run")
    again = Run.resume(tmp_path / "run", launcher=my_launcher).wait(60)
    assert again.status.supply == "launcher=my_launcher"
    assert Run.resume(tmp_path / "run", launcher=None).wait(60).counts() == {JobState.FAILED: 1}


def test_an_executor_must_be_given_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"kind": "transient", "executor": ThreadPoolExecutor(1)}
    Workload().add("job", commands.fail).run(store=tmp_path / "run", **options).wait()
    with pytest.raises(InvalidWorkload, match="this run used executor=ThreadPoolExecutor; give"):
        Run.resume(tmp_path / "run", workers=1)
    again = Run.resume(tmp_path / "run", executor=lambda: ThreadPoolExecutor(1)).wait()
    assert again.counts() == {JobState.FAILED: 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pools": {"disk": 1}}, "job 'job' is in the pool 'db', which has no size"),
        ({"pools": None}, "pools must be a dict"),
        ({"pools": {"db": 0}}, "the size of pool 'db' must be"),
        ({"host": 7}, "host must be"),
        ({"launcher": 7}, "launcher must be a function"),
        ({"executor": len}, "executor= is for transient workers"),
        ({"rerun": "no"}, "rerun must be True or False"),
        ({"on_error": "ignore"}, "on_error must be one of"),
    ],
)
def test_the_options_of_resume_are_checked_like_those_of_run(
    a_run_with_a_pool: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidWorkload, match=message):
        Run.resume(a_run_with_a_pool, **changes)


@pytest.fixture(scope="module")
def a_run_with_a_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("pool") / "run"
    Workload().add("job", os.getpid, pool="db").run(workers=1, store=store, pools={"db": 1}).wait()
    return store


def test_the_files_of_a_job_whose_end_no_master_saw_are_not_taken_for_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> int:
        Path("out").write_text("1")
        os.kill(os.getppid(), signal.SIGSTOP)  # the record is posted, but not read
        return 1

    monkeypatch.chdir(tmp_path)
    workload = Workload().add("write", write, files_out=["out"])
    run = workload.run(workers=1, store="store")
    segment = Store("store").segment(1)
    wait_until(lambda: segment.exists() and segment.stat().st_size > 0, seconds=60)
    os.kill(run.pid, signal.SIGKILL)
    run.wait_for_master(60)
    assert states(Run.resume("store").wait()) == {"write": JobState.DONE}
    os.remove("out")
    assert workload.plan("store").table()[0]["action"] == "run"


def test_a_run_that_was_killed_before_it_had_a_plan_is_not_resumed_as_the_earlier_one(
    tmp_path: Path,
) -> None:
    Workload().add("old", int).run(workers=1, store=tmp_path / "store").wait()
    script = (
        "import os, signal\n"
        "from pyrite.workload import Workload\n"
        "from pyrite.workload.storage.store import Store\n"
        "Store.write_plan = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"Workload().add('new', int).run(workers=1, store={str(tmp_path / 'store')!r})"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    with pytest.raises(PyriteError, match="before it started; there is nothing to resume"):
        Run.resume(tmp_path / "store")


def test_what_is_below_a_result_that_is_gone_runs_again_too(tmp_path: Path) -> None:
    def write() -> Path:
        path = tmp_path / "out"
        path.write_text("old" if not path.exists() else "new")
        return path

    def read(write: Path) -> str:
        return write.read_text()

    def compare(write: Path, read: str) -> tuple[str, str]:
        if write.read_text() == "old":
            raise ValueError("not yet")
        return write.read_text(), read

    workload = Workload().add("write", write).add("read", read, after="write")
    workload.add("compare", compare, after=["write", "read"])
    threads: dict[str, Any] = {"executor": lambda: ThreadPoolExecutor(1)}
    workload.run(kind="transient", store=tmp_path / "run", **threads).wait()
    (tmp_path / "out").write_text("changed by somebody")
    run = Run.resume(tmp_path / "run", **threads).wait()
    assert run.results["compare"] == ("new", "new")
