"""What a job leaves running, what the death of one worker does to the others, and workers that do
not start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import JobState, Run, RunBroken, Workload
from pyrite.workload.workers.launched import launching
from tests.workload import commands
from tests.workload.conftest import is_alive, processes_of, row_of, states, wait_until


def zombies_below(pid: int) -> int:
    """The zombies among the children of a process and of their children."""
    found = 0
    for child in children_of(pid):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += (state == "Z") + zombies_below(child)
    return found


def children_of(pid: int) -> Iterator[int]:
    try:
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        pass


def workers_of(run: Run) -> list[int]:
    found = processes_of(run.store)
    return [pid for pid, command in found if '"module": "workers.worker"' in command]


# What a job leaves


@pytest.mark.parametrize("end", ["kill", "timeout"])
def test_the_children_of_a_job_survive_the_death_of_another_worker(
    tmp_path: Path, end: str
) -> None:
    died = tmp_path / "died"
    script = f"(sleep 30 & echo $! > {tmp_path}/p); touch {tmp_path}/began; "
    script += f"while ! test -e {died}; do sleep 0.01; done; kill -0 $(cat {tmp_path}/p)"

    def harm() -> None:
        commands.wait_for(str(tmp_path / "began"))
        os.kill(os.getpid(), signal.SIGKILL) if end == "kill" else time.sleep(1000)

    workload = Workload().add("a", ["sh", "-c", script])
    workload.add("b", harm, timeout=1.0 if end == "timeout" else None)
    run = workload.run(workers=2, crashes_max=0, store=tmp_path / "run")
    wait_until(lambda: states(run)["b"] in ("CRASHED", "TIMEOUT"), 60)
    died.touch()
    assert states(run.wait())["a"] == "DONE"


def leave(how: str) -> int:
    """Leaves a process behind, and returns its process id."""
    if how == "child":
        return subprocess.Popen(["sleep", "1000"]).pid
    if how == "session":
        return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid
    script = "setsid sh -c 'sleep 1000 >&2 & echo $!' &"
    return int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("how", ["child", "session", "daemon"])
def test_what_a_job_leaves_running_has_ended_when_the_next_job_begins(
    tmp_path: Path, how: str
) -> None:
    workload = Workload().add("first", lambda: (leave(how), os.getpid()))
    workload.add("look", lambda first: (is_alive(first[0]), os.getpid()), after=["first"])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["look"] == (False, run.results["first"][1])  # in the same worker


def test_a_daemon_of_a_job_that_kills_its_worker_ends_too(tmp_path: Path) -> None:
    def job() -> None:
        commands.note(str(tmp_path / "daemon"), str(leave("daemon")))
        commands.kill_worker()

    workload = Workload().add("job", job)
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait()
    assert states(run) == {"job": "CRASHED"}
    assert not is_alive(int(commands.lines(tmp_path / "daemon")[0]))


@pytest.mark.parametrize("holds_the_gil", [False, True])
def test_a_daemon_of_a_job_ends_when_the_master_is_killed(
    tmp_path: Path, holds_the_gil: bool
) -> None:
    def job() -> None:
        commands.note(str(tmp_path / "daemon"), str(leave("daemon")))
        sum(range(10**12)) if holds_the_gil else time.sleep(1000)

    run = Workload().add("job", job).run(workers=1, store=tmp_path / "run")
    wait_until(lambda: bool(commands.lines(tmp_path / "daemon")), 60)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(int(commands.lines(tmp_path / "daemon")[0])), 5)


def test_zombies_do_not_pile_up_during_a_run(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(100):
        workload.add(f"j{n}", ["sh", "-c", "(true &)"])
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload.add(
        "last", commands.tell_and_wait, args=[said, go], after=[f"j{n}" for n in range(100)]
    )
    run = workload.run(workers=2, store=tmp_path / "run")
    wait_until(lambda: bool(commands.lines(said)), 60)
    assert zombies_below(run.pid) == 0
    Path(go).touch()
    run.wait()


def leave_a_pool(method: str) -> list[int]:
    pool = get_context(method).Pool(1)
    globals()["kept"] = pool  # so that it is not collected
    pool.map(abs, [-1])
    return [process.pid for process in pool._pool]  # type: ignore[attr-defined]


def test_a_pool_of_processes_that_a_job_left_open_ends_and_the_next_job_can_make_one(
    tmp_path: Path,
) -> None:
    workload = Workload()
    methods = ["fork", "forkserver", "forkserver"]
    for n, method in enumerate(methods):
        workload.add(f"j{n}", leave_a_pool, args=[method], after=[f"j{n - 1}"] if n else [])
    workload.add("look", lambda j2: [*map(is_alive, j2)], after=["j2"])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert not run.failed()
    assert run.results["look"] == [False]
    assert {row["attempt"] for row in run.table()} == {1}


# Workers that do not start

_CUSTOMIZED = """
import os, signal, sys
if '"module": "workers.worker"' in sys.orig_argv[-1]:
    {body}
"""


def customize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Every worker process that is started from now on runs these lines first."""
    folder = tmp_path / "custom"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_CUSTOMIZED.format(body=body))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))


def stop_the_first(tmp_path: Path) -> str:
    marker = str(tmp_path / "stopped")
    return (
        f"os.path.exists({marker!r}) or "
        f"(os.mkdir({marker!r}), os.kill(os.getpid(), signal.SIGSTOP))"
    )


def test_a_worker_that_is_stopped_before_it_is_ready_is_killed_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "START_SECONDS", 4.0)
    customize(tmp_path, monkeypatch, stop_the_first(tmp_path))
    workload = Workload().add("job", commands.nothing)
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait(60)
    row = row_of(run, "job")
    assert (row["state"], row["attempt"]) == (JobState.DONE, 1)


def test_workers_that_never_start_break_the_run_and_it_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "START_SECONDS", 0.5)
    customize(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGSTOP)")
    run = Workload().add("job", commands.nothing).run(crashes_max=0, store=tmp_path / "run")
    with pytest.raises(RunBroken, match=r"3 workers in a row .* not ready within 0\.5 s"):
        run.wait(60)
    assert not run.failed()


@pytest.mark.parametrize("kind", ["local", "launched"])
def test_workers_with_a_broken_interpreter_break_the_run_and_no_job_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    customize(tmp_path, monkeypatch, "print('no module named encodings'); os._exit(1)")
    workload = Workload()
    for n in range(20):
        workload.add(f"j{n}", commands.nothing)
    with ThreadPoolExecutor(2) as pool:
        launcher = pool.map if kind == "launched" else None
        run = workload.run(workers=2, launcher=launcher, crashes_max=0, store=tmp_path / "run")
        with pytest.raises(RunBroken, match="no module named encodings"):
            run.wait(60)
    assert not run.failed()


def test_an_interpreter_that_is_not_there_breaks_the_launched_run_and_no_job_is_blamed(
    tmp_path: Path,
) -> None:
    def launcher(function: Any, posts: Any) -> Any:
        with monkeypatch_executable(), ThreadPoolExecutor(1) as pool:
            yield from pool.map(function, posts)

    run = (
        Workload()
        .add("job", commands.nothing)
        .run(workers=1, launcher=launcher, crashes_max=0, store=tmp_path / "run")
    )
    with pytest.raises(RunBroken, match="/no/python"):
        run.wait(60)
    assert not run.failed()


@contextmanager
def monkeypatch_executable() -> Iterator[None]:
    before, sys.executable = sys.executable, "/no/python"
    try:
        yield
    finally:
        sys.executable = before
