"""Hostile cases: jobs that harm their worker, processes that hide, starts that are killed, unusual
input."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyrite.errors import PyriteError
from pyrite.workload import InvalidWorkload, Run, RunBroken, Schedule, Workload
from pyrite.workload.storage.store import Store
from tests.workload import commands
from tests.workload.conftest import processes_of, row_of, states, wait_until


def fork_and_return() -> str:
    return "child" if os.fork() == 0 else "parent"


def fork_and_raise() -> str:
    if os.fork() == 0:
        raise ValueError("in the child")
    return "parent"


def remove_own_folder(path: str) -> None:
    os.mkdir(path)
    os.chdir(path)
    os.rmdir(path)


def close_output() -> None:
    os.close(1)
    os.close(2)


def close_streams() -> None:
    sys.stdout.close()
    sys.stderr.close()


def lose_streams() -> None:
    sys.stdout = None


def redirect_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@pytest.mark.parametrize(
    "job",
    [fork_and_return, fork_and_raise, close_output, close_streams, lose_streams, redirect_output],
)
def test_a_job_cannot_break_its_worker_for_the_next_job(tmp_path: Path, job: Any) -> None:
    workload = Workload().add("bad", job)
    for n in range(20):
        workload.add(f"j{n}", lambda n: print("job", n) or n, args=[n])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert not run.failed(), run.failed()
    assert [run.results[f"j{n}"] for n in range(20)] == list(range(20))
    assert [run.log(f"j{n}") for n in range(20)] == [f"job {n}\n" for n in range(20)]
    if "fork" in job.__name__:
        assert run.results["bad"] == "parent"


def test_a_job_that_removes_its_working_directory_does_not_break_its_worker(tmp_path: Path) -> None:
    workload = (
        Workload()
        .add("bad", remove_own_folder, args=[str(tmp_path / "folder")])
        .add("next", os.getcwd)
    )
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["next"] == os.getcwd()


def use_multiprocessing(method: str) -> list[int]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(abs, [-1, -2, -3])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_job_may_use_multiprocessing(tmp_path: Path, method: str) -> None:
    run = (
        Workload().add("job", use_multiprocessing, args=[method]).run(store=tmp_path / "run").wait()
    )
    assert run.results["job"] == [1, 2, 3]


def test_a_program_can_be_interrupted_by_a_signal(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", ["sh", "-c", "kill -INT $$; sleep 5; exit 0"])
        .run(store=tmp_path / "run")
        .wait()
    )
    assert "SIGINT" in str(row_of(run, "job")["error"])


# Processes that hide


def daemonize(said: str) -> None:
    """Starts a process in a new session and without a parent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            commands.note(said, str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    os.wait()
    commands.wait_for(said)


@pytest.mark.parametrize("end", ["cancel", "timeout", "kill"])
def test_programs_in_process_groups_of_their_own_end_with_the_run(tmp_path: Path, end: str) -> None:
    workload = Workload().add(
        "job", ["timeout", "1000", "sleep", "999"], timeout=1.0 if end == "timeout" else None
    )
    run = workload.run(store=tmp_path / "run")
    wait_until(
        lambda: any(command.startswith("sleep 999") for _, command in processes_of(tmp_path))
    )
    if end == "cancel":
        run.cancel()
    elif end == "kill":
        os.kill(run.pid, signal.SIGKILL)
    else:
        run.wait()
    wait_until(lambda: not processes_of(tmp_path), 2)


def test_a_daemon_that_a_job_leaves_ends_with_its_worker_and_does_not_keep_the_store(
    tmp_path: Path,
) -> None:
    said = str(tmp_path / "said")
    workload = Workload().add("job", daemonize, args=[said])
    workload.run(store=tmp_path / "run").wait()
    wait_until(lambda: not Path(f"/proc/{commands.lines(said)[0]}").exists(), 2)
    started = time.monotonic()
    workload.run(store=tmp_path / "run", rerun=True).wait()
    assert time.monotonic() - started < 5


# Timeouts


def test_the_start_of_a_worker_does_not_count_for_the_timeout_of_a_job(tmp_path: Path) -> None:
    run = Workload().add("job", commands.nothing, timeout=0.05).run(store=tmp_path / "run").wait()
    assert states(run) == {"job": "DONE"}


def test_many_timeouts_in_a_row_do_not_break_the_run(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(5):
        workload.add(f"j{n}", time.sleep, args=[1000], timeout=0.05)
    run = workload.run(store=tmp_path / "run", workers=1).wait()
    assert {row["state"] for row in run.table()} == {"TIMEOUT"}


# Starts that are killed

_KILLED_START = """
import os, signal, sys
from pyrite.workload import Workload, starting
from pyrite.workload.storage.journal import Journal
where = sys.argv[2]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "before the journal":
    Journal.begin = die
elif where == "after the journal":
    starting.start = die
else:
    starting.processes.start = die
Workload().add("x", lambda: 1).add("z", lambda: 2).run(store=sys.argv[1])
"""


@pytest.mark.parametrize("where", ["before the journal", "after the journal", "before the master"])
def test_a_killed_start_leaves_the_old_run_or_the_new_one_and_never_a_mixture(
    tmp_path: Path, where: str
) -> None:
    store = tmp_path / "run"
    Workload().add("x", lambda: 1).add("y", lambda: 2).run(store=store).wait()
    assert (
        subprocess.run([sys.executable, "-c", _KILLED_START, str(store), where]).returncode
        == -signal.SIGKILL
    )
    cut = Run.attach(store)
    with pytest.raises(RunBroken, match="killed"):
        cut.wait()
    ids = [row["job"] for row in cut.table()]
    assert ids == (["x", "y"] if where == "before the journal" else ["x", "z"])
    if where == "before the journal":
        with pytest.raises(PyriteError, match="before it started; there is nothing to resume"):
            Run.resume(store)
        return
    done = Run.resume(store).wait()
    assert list(done.results) == ids
    assert dict(done.results) == {id: {"x": 1, "y": 2, "z": 2}[id] for id in ids}


def test_a_killed_first_start_leaves_a_store_that_can_be_used(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", _KILLED_START, str(tmp_path / "run"), "before the journal"]
    )
    run = Workload().add("x", lambda: 1).run(store=tmp_path / "run").wait()
    assert run.results["x"] == 1


def test_a_job_whose_large_result_was_damaged_runs_again(tmp_path: Path) -> None:
    workload = Workload().add("large", bytes, args=[3_000_000])
    workload.run(store=tmp_path / "run").wait()
    (file,) = (tmp_path / "run" / "segments").glob("*.pickle")
    os.truncate(file, 1000)
    run = workload.run(store=tmp_path / "run").wait()
    assert states(run) == {"large": "DONE"}
    assert run.results["large"] == bytes(3_000_000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 0}, "workers must be"),
        ({"workers": "3"}, "workers must be"),
        ({"kind": "odd"}, "kind must be"),
        ({"wrokers": 3}, "a run has no option 'wrokers'"),
    ],
)
def test_bad_changes_at_a_resume_are_refused_and_change_nothing(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    Workload().add("job", commands.fail).run(store=tmp_path / "run").wait()
    with pytest.raises(InvalidWorkload, match=message):
        Run.resume(tmp_path / "run", **changes)
    assert Run.resume(tmp_path / "run", kind="transient").wait().status.phase == "ended"


# Jobs whose result does not tell whether they are up to date


def test_a_changed_output_file_of_a_program_makes_its_downstream_jobs_run_again(
    tmp_path: Path,
) -> None:
    data, out = tmp_path / "data.txt", tmp_path / "out.txt"
    for text, expected in [("1", "DONE"), ("1", "SKIPPED"), ("2", "DONE"), ("2", "SKIPPED")]:
        (tmp_path / "gen.sh").write_text(f"echo {text} > $1")
        workload = (
            Workload()
            .add("gen", ["sh", tmp_path / "gen.sh", data])
            .add("use", ["cp", data, out], after="gen")
        )
        assert set(states(workload.run(store=tmp_path / "run").wait()).values()) == {expected}
        assert out.read_text() == f"{text}\n"


def test_a_changed_job_without_a_result_makes_its_downstream_jobs_run_again(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def workload(text: str) -> Workload:
        def write() -> None:
            file.write_text(text)

        return Workload().add("write", write).add("read", file.read_text, after=["write"])

    assert workload("a").run(store=tmp_path / "run").wait().results["read"] == "a"
    assert set(states(workload("a").run(store=tmp_path / "run").wait()).values()) == {"SKIPPED"}
    assert workload("b").run(store=tmp_path / "run").wait().results["read"] == "b"


# Input and size


def test_none_may_be_an_argument(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", lambda x=5, y=0: (x, y), kwargs={"x": None, "y": 1})
        .run(store=tmp_path / "run")
        .wait()
    )
    assert run.results["job"] == (None, 1)


def test_an_array_as_args(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", lambda a, b: a + b, args=np.array([1, 2]))
        .run(store=tmp_path / "run")
        .wait()
    )
    assert run.results["job"] == 3


def test_half_a_surrogate_pair_is_not_an_id() -> None:
    with pytest.raises(InvalidWorkload, match="half of a surrogate pair"):
        Workload().add("a\ud800", print)
    with pytest.raises(InvalidWorkload, match="half of a surrogate pair"):
        Workload.from_table([{"job": "a\ud800", "command": print}])


def test_sys_path_may_contain_path_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    assert states(Workload().add("job", commands.nothing).run(store=tmp_path / "run").wait()) == {
        "job": "DONE"
    }


def test_a_short_status_may_replace_a_long_one(tmp_path: Path) -> None:
    workload = Workload().add("job", commands.nothing)
    workload.run(
        store=tmp_path / "run", pools={f"a pool with a long name {n}": 1 for n in range(400)}
    ).wait()
    workload.run(store=tmp_path / "run").wait()
    status = Store(tmp_path / "run").status()
    assert status is not None
    assert status.phase == "ended"


def test_a_run_works_with_many_open_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        Workload().add("job", commands.nothing).run(store=tmp_path / "run").wait()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_error_may_have_any_character(tmp_path: Path) -> None:
    run = (
        Workload().add("job", commands.fail, args=["a\0b\ud800"]).run(store=tmp_path / "run").wait()
    )
    assert "a\\0b" in str(row_of(run, "job")["error"])
    assert "Traceback" in run.traceback("job")


def test_a_running_jobs_output_can_be_read(tmp_path: Path) -> None:
    go = str(tmp_path / "go")

    def job() -> None:
        print("so far")
        commands.wait_for(go)

    run = (
        Workload()
        .add("before", print, args=["before"])
        .add("job", job, after=["before"])
        .run(store=tmp_path / "run", workers=1)
    )
    wait_until(lambda: run.log("job") == "so far\n")
    Path(go).touch()
    run.wait()
    assert run.log("job") == "so far\n"


def test_a_large_pool_is_no_slower_than_none() -> None:
    from tests.workload.scheduling.test_scheduler import scheduler

    count = 20_000
    s = scheduler(count, needs={job: {"one": 1} for job in range(count)}, capacities={"one": 1})
    for _ in range(count):
        (assignment,) = s.assignments(0)
        s.finished(assignment.job, 1, succeeded=True, now=0)
    assert s.has_ended()


def test_many_unknown_ids_are_reported_quickly() -> None:
    jobs = [{"job": f"job-{n}", "command": commands.nothing} for n in range(3000)]
    schedule = Schedule([(f"jbo-{n}", f"jbo-{n}") for n in range(3000)])
    started = time.monotonic()
    with pytest.raises(InvalidWorkload):
        Workload.from_table(jobs).validate(schedule)
    assert time.monotonic() - started < 10
