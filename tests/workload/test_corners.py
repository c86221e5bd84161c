"""Corner cases that were wrong once: closed streams, handles that outlive their run, limits of the
system, executors that were shut down."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyrite import PyriteError
from pyrite.system.alive import Identity
from pyrite.workload import JobState, Run, RunBroken, Workload
from pyrite.workload.system.processes import Reaper
from tests.workload import commands
from tests.workload.conftest import processes_of, row_of, states, wait_until

_TWO_MASTERS = """
import sys
from pyrite.workload import StoreInUse, Workload
from tests.workload import commands
workload = Workload().add("job", commands.tell_and_wait, args=[sys.argv[2], sys.argv[3]])
first = workload.run(store=sys.argv[1])
commands.wait_for(sys.argv[2])
try:
    workload.run(store=sys.argv[1])
    commands.note(sys.argv[4], "admitted")
except StoreInUse:
    commands.note(sys.argv[4], "refused")
open(sys.argv[3], "w").close()
first.wait()
commands.note(sys.argv[4], "ended")
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_works_with_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    files = [str(tmp_path / name) for name in ("run", "said", "go", "out")]
    script = tmp_path / "two.py"
    script.write_text(_TWO_MASTERS)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, str(script), *files],
        timeout=60,
        env=environment,
    )
    assert done.returncode == 0
    assert commands.lines(files[3]) == ["refused", "ended"]
    assert len(commands.lines(files[1])) == 1


def test_a_failed_start_leaves_the_store_to_the_earlier_run(tmp_path: Path) -> None:
    earlier = Workload().add("job", commands.nothing).run(store=tmp_path / "run").wait()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    large = Workload().add("large", len, args=[bytes(1_000_000)])
    try:
        for store in ("run", "new"):
            with pytest.raises(RunBroken, match="cannot write to"):
                large.run(store=tmp_path / store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    for run in (earlier, Run.attach(tmp_path / "run")):
        assert states(run.wait(5).cancel()) == {"job": JobState.DONE}
    for function in (Run.attach, Run.resume):
        with pytest.raises(PyriteError, match="failed, before it started"):
            function(tmp_path / "new")


def test_cancelling_a_run_that_is_starting_does_not_kill_the_process_that_starts_it(
    tmp_path: Path,
) -> None:
    from pyrite.workload.storage.store import Store

    run = Workload().add("job", commands.nothing).run(store=tmp_path / "run").wait()
    store = Store(tmp_path / "run")
    ended = run.status
    store.write_status(
        type(ended)(
            **{**_fields(ended), "phase": "starting", "master": Identity.here(), "ended": None}
        )
    )
    with pytest.raises(PyriteError, match="still starting"):
        Run.attach(tmp_path / "run").cancel()


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def test_a_handle_follows_a_run_that_is_resumed(tmp_path: Path) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    first = (
        Workload()
        .add("job", commands.tell_and_hang_the_first_time, args=[said, marker])
        .run(store=tmp_path / "run")
    )
    commands.wait_for(said)
    first.cancel()
    assert states(first) == {"job": "CANCELLED"}
    Run.resume(tmp_path / "run")
    assert first.wait().results["job"] == "done"


def test_an_old_handle_says_that_its_store_belongs_to_a_newer_run(tmp_path: Path) -> None:
    first = Workload().add("a", lambda: 1).run(store=tmp_path / "run").wait()
    Workload().add("b", lambda: 2).run(store=tmp_path / "run").wait()
    for look in (first.table, lambda: first.results["a"], lambda: first.replay("a")):
        with pytest.raises(PyriteError, match="now belongs to a newer run"):
            look()


def test_very_long_timeouts_work(tmp_path: Path) -> None:
    run = Workload().add("job", commands.nothing, timeout=1e9).run(store=tmp_path / "run")
    run.wait(1e9)
    Run.attach(tmp_path / "run").wait(float("inf"))
    transient = (
        Workload().add("job", commands.nothing).run(kind="transient", store=tmp_path / "other")
    )
    transient.wait(float("inf"))


def test_the_log_of_a_job_that_waits_behind_another_is_empty(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = (
        Workload()
        .add("first", print, args=["hello"])
        .add("long", commands.tell_and_wait, args=[said, go], after="first")
    )
    workload.add("behind", print, args=["later"], after="first")
    run = workload.run(store=tmp_path / "run", workers=1)
    commands.wait_for(said)
    wait_until(lambda: states(run)["behind"] == "ASSIGNED")
    assert run.log("behind") == ""
    run.cancel()
    assert run.log("behind") == ""
    assert row_of(run, "behind")["worker"] is None


def test_the_duration_of_a_job_does_not_include_its_time_in_the_queue(tmp_path: Path) -> None:
    workload = (
        Workload()
        .add("first", time.sleep, args=[1])
        .add("second", time.sleep, args=[1000], timeout=0.3)
    )
    run = workload.run(store=tmp_path / "run", workers=1).wait()
    assert states(run) == {"first": "DONE", "second": "TIMEOUT"}
    assert row_of(run, "second")["seconds"] < 0.9  # type: ignore[operator]


def test_a_long_error_is_cut_in_the_table_and_whole_in_the_traceback(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", commands.fail, args=["x" * 100_000])
        .run(store=tmp_path / "run")
        .wait()
    )
    assert len(str(row_of(run, "job")["error"])) < 3000
    assert "x" * 100_000 in run.traceback("job")


def test_a_job_that_removes_the_folder_of_its_worker_keeps_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def remove() -> str:
        shutil.rmtree(os.getcwd())
        return "done"

    run = (
        Workload()
        .add("job", remove)
        .add("next", lambda: "next", after=["job"])
        .run(store=tmp_path / "run", workers=1)
        .wait()
    )
    assert dict(run.results) == {"job": "done", "next": "next"}
    monkeypatch.chdir(tmp_path)


def test_an_executor_that_is_shut_down_breaks_the_run(tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    run = (
        Workload()
        .add("job", commands.nothing)
        .run(kind="transient", executor=pool, store=tmp_path / "run")
    )
    with pytest.raises(RunBroken, match="do not shut it down before the run has ended"):
        run.wait()


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_a_process_that_a_job_starts_in_a_new_session_is_killed_at_the_timeout(
    tmp_path: Path, kind: Any
) -> None:
    def job() -> None:
        subprocess.Popen(["sleep", "4321"], start_new_session=True)
        time.sleep(1000)

    run = Workload().add("job", job, timeout=1.0).run(kind=kind, store=tmp_path / "run").wait()
    assert states(run) == {"job": "TIMEOUT"}
    wait_until(lambda: not processes_of(tmp_path), 2)


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_an_orphan_process_of_a_job_is_killed_at_the_timeout(tmp_path: Path, kind: Any) -> None:
    workload = Workload().add("job", ["sh", "-c", "(sleep 4321 &); exec sleep 1000"], timeout=1.0)
    assert states(workload.run(kind=kind, store=tmp_path / "run").wait()) == {"job": "TIMEOUT"}
    wait_until(lambda: not processes_of(tmp_path), 2)


def test_workers_end_with_their_master_even_if_the_reaper_was_killed(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    run = (
        Workload()
        .add("job", commands.tell_and_wait, args=[said, "/nowhere"])
        .run(store=tmp_path / "run")
    )
    commands.wait_for(said)
    (reaper,) = [pid for pid, command in processes_of(tmp_path) if "reaper.py" in command]
    os.kill(reaper, signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path), 2)


def test_a_transient_run_that_breaks_does_not_wait_for_running_jobs(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    code = f"""
import resource, signal
from pyrite.workload import RunBroken, Workload
from tests.workload import commands
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def large():
    commands.wait_for({said!r})
    return bytes(800_000)
workload = Workload().add("long", commands.tell_and_wait, args=[{said!r}, "/nowhere"])
workload.add("large", large)
run = workload.run(kind="transient", workers=2, store={str(tmp_path / "run")!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, -1))
try:
    run.wait(20)
except RunBroken:
    print("broken")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "broken\n", done.stderr
    wait_until(lambda: not processes_of(tmp_path), 3)


def test_the_reaper_kills_only_registered_processes() -> None:
    """It must not kill another process that got the same process id later."""
    with (
        subprocess.Popen(["sleep", "1000"]) as innocent,
        subprocess.Popen(["sleep", "1000"]) as guilty,
    ):
        reaper = Reaper()
        reaper.watch_process(Identity(innocent.pid, "12345"))
        reaper.watch_process(Identity.of(guilty.pid))
        reaper._pipe.close()  # as if this process had died
        reaper.process.wait()
        assert guilty.wait(5) == -signal.SIGKILL
        assert innocent.poll() is None
        innocent.kill()


def test_only_as_many_workers_start_as_there_is_work_for(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(50):
        workload.add(f"j{n}", os.getpid)
    run = workload.run(workers=50, store=tmp_path / "run").wait()
    assert len(set(run.results.values())) < 20


def test_a_store_that_another_version_wrote_is_refused_in_a_sentence(tmp_path: Path) -> None:
    Workload().add("job", commands.nothing).run(store=tmp_path / "run").wait()
    (plan,) = (tmp_path / "run" / "plans").glob("*/plan.pickle")
    plan.write_bytes(b"cpyrite.workload.gone\nPlan\n.")
    with pytest.raises(PyriteError, match="written by another version of Pyrite"):
        Run.attach(tmp_path / "run")
