"""The store of a run: results that outlive it, pruning, handles, files that only the owner reads,
and what is left of a run whose master was killed."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyrite.errors import PyriteError, StoreInUse
from pyrite.workload import JobState, Run, Workload
from pyrite.workload.input.fingerprints import NO_FINGERPRINT
from pyrite.workload.storage.cleanup_queue import INLINE_BYTES, Ending, SegmentWriter
from pyrite.workload.storage.encoding import encode
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store
from tests.workload import commands
from tests.workload.conftest import row_of, states, wait_until


def run_of(store: Path, **jobs: Callable[[], Any]) -> Run:
    """A run in threads of this process, which needs no time to start workers."""
    workload = Workload()
    for id, function in jobs.items():
        workload.add(id, function)
    executor = ThreadPoolExecutor(1)
    return workload.run(kind="transient", executor=executor, store=store).wait()


@pytest.mark.parametrize("store", [3, b"folder", ["folder"], "a\0b"])
def test_a_store_that_is_no_path_is_refused_in_a_sentence(store: Any) -> None:
    workload = Workload().add("a", lambda: 1)
    uses: list[Callable[[Any], Any]] = [
        *(Run.attach, Run.resume, Run.prune, workload.plan),
        lambda store: workload.run(store=store),
    ]
    for use in uses:
        with pytest.raises(PyriteError, match="a store is the path of a folder; got"):
            use(store)


def test_a_process_that_is_forked_while_a_run_starts_does_not_keep_the_store(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "run")
    store.make()
    reading, writing = os.pipe()
    with store.locked():
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the test has ended
            os._exit(0)
    try:
        with store.locked():
            pass
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


# Results outlive the run


def test_another_workload_in_the_same_store_leaves_the_results_of_the_first(tmp_path: Path) -> None:
    run_of(tmp_path / "run", a=lambda: 1, b=lambda: 2)
    run_of(tmp_path / "run", c=lambda: 3)
    again = run_of(tmp_path / "run", a=lambda: 1, b=lambda: 2)
    assert states(again) == {"a": "SKIPPED", "b": "SKIPPED"}
    assert dict(again.results) == {"a": 1, "b": 2}


def test_a_job_that_goes_back_to_an_older_version_is_skipped(tmp_path: Path) -> None:
    versions: list[Callable[[], int]] = [lambda: 1, lambda: 2, lambda: 1]
    runs = [run_of(tmp_path / "run", a=version) for version in versions]
    assert states(runs[-1]) == {"a": "SKIPPED"}
    assert runs[-1].results["a"] == 1


def test_a_job_without_a_result_that_goes_back_to_an_older_version_runs_again(
    tmp_path: Path,
) -> None:
    """What it wrote elsewhere is that of the version between."""
    path = tmp_path / "written"
    versions = [lambda: note("old"), lambda: note("new"), lambda: note("old")]

    def note(text: str) -> None:
        path.write_text(text)

    states_of_last = [states(run_of(tmp_path / "run", a=version)) for version in versions][-1]
    assert states_of_last == {"a": "DONE"}
    assert path.read_text() == "old"


def test_the_output_of_a_skipped_job_is_that_of_the_run_with_its_result(tmp_path: Path) -> None:
    run_of(tmp_path / "run", a=lambda: print("first") or 1)
    run_of(tmp_path / "run", b=lambda: 2)
    again = run_of(tmp_path / "run", a=lambda: print("first") or 1)
    assert states(again) == {"a": "SKIPPED"}
    assert again.log("a") == "first\n"


# Pruning


def test_prune_removes_what_the_last_run_does_not_use(tmp_path: Path) -> None:
    run_of(tmp_path / "run", a=lambda: 1, large=lambda: bytes(INLINE_BYTES + 1))
    last = run_of(tmp_path / "run", a=lambda: 1, b=lambda: 2)
    would = Run.prune(tmp_path / "run", dry_run=True)
    assert would.results == 1
    assert would.bytes > INLINE_BYTES
    assert len([*(tmp_path / "run").rglob("*.pickle")]) == 1 + 1  # of the result and of the plan
    assert Run.prune(tmp_path / "run") == would
    assert len([*(tmp_path / "run").rglob("*.pickle")]) == 1
    assert Run.prune(tmp_path / "run").results == 0
    assert dict(last.results) == {"a": 1, "b": 2}
    assert states(run_of(tmp_path / "run", a=lambda: 1, b=lambda: 2)) == {
        "a": "SKIPPED",
        "b": "SKIPPED",
    }


def test_prune_removes_whole_segments_with_their_logs(tmp_path: Path) -> None:
    run_of(tmp_path / "run", a=lambda: print("output") or 1)
    run_of(tmp_path / "run", b=lambda: 2)
    Run.prune(tmp_path / "run")
    assert [path.stem for path in (tmp_path / "run" / "segments").iterdir()] == ["000002"]
    assert not (tmp_path / "run" / "logs" / "000001.log").exists()


def test_prune_keeps_the_latest_results_of_each_job_on_request(tmp_path: Path) -> None:
    for version in (lambda: 1, lambda: 2, lambda: 3):
        run_of(tmp_path / "run", a=version)
    run_of(tmp_path / "run", b=lambda: 1)
    assert Run.prune(tmp_path / "run", keep=2).results == 1
    assert Run.prune(tmp_path / "run", keep=1).results == 1
    assert states(run_of(tmp_path / "run", a=lambda: 3)) == {"a": "SKIPPED"}


def test_prune_keeps_what_a_job_that_failed_may_need_and_its_log(tmp_path: Path) -> None:
    run_of(tmp_path / "run", a=lambda: 1)

    def a() -> None:
        print("said")
        raise ValueError("wrong")

    failed = run_of(tmp_path / "run", a=a)
    assert Run.prune(tmp_path / "run").results == 0
    assert failed.log("a") == "said\n"
    assert "wrong" in failed.traceback("a")
    assert states(run_of(tmp_path / "run", a=lambda: 1)) == {"a": "SKIPPED"}


def test_prune_refuses_while_a_run_uses_the_store(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    run = workload.run(workers=1, store=tmp_path / "run")
    commands.wait_for(said)
    with pytest.raises(StoreInUse):
        Run.prune(tmp_path / "run")
    Path(go).touch()
    run.wait()


@pytest.mark.parametrize("keep", [-1, "2", None, True])
def test_prune_takes_a_number_of_results(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(PyriteError, match="keep must be the number"):
        Run.prune(tmp_path, keep=keep)


# Handles


@pytest.mark.parametrize("timeout", ["5", [5], b"5"])
def test_a_timeout_that_is_no_number_is_refused_in_a_sentence(tmp_path: Path, timeout: Any) -> None:
    run = run_of(tmp_path / "run", a=lambda: 1)
    for use in (run.wait, run.cancel):
        with pytest.raises(PyriteError, match="timeout must be a number of seconds"):
            use(timeout)


def test_cancelling_an_ended_run_leaves_a_later_run_in_its_store_alone(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    first = run_of(tmp_path / "run", a=lambda: 1)
    assert states(first) == {"a": "DONE"}
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    second = workload.run(workers=1, store=tmp_path / "run")
    commands.wait_for(said)
    assert first.has_ended
    assert first.cancel() is first
    assert first.wait() is first
    assert states(first) == {"a": "DONE"}
    assert first.results["a"] == 1
    with pytest.raises(PyriteError, match="now belongs to a newer run"):
        first.replay("a")
    Path(go).touch()
    assert second.wait().status.phase == "ended"


def test_waiting_for_a_killed_run_whose_store_has_a_newer_run_says_so(tmp_path: Path) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    workload = Workload().add("job", commands.tell_and_hang_the_first_time, args=[said, marker])
    killed = workload.run(workers=1, store=tmp_path / "run")
    commands.wait_for(said)
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(lambda: killed.has_ended, 60)
    run_of(tmp_path / "run", b=lambda: 2)
    for look in (killed.wait, killed.table, killed.counts, lambda: killed.results["job"]):
        with pytest.raises(PyriteError, match="now belongs to a newer run"):
            look()


# A master that was killed


def test_nothing_is_shown_as_running_when_the_master_is_dead(tmp_path: Path) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    workload = Workload().add("job", commands.tell_and_hang_the_first_time, args=[said, marker])
    workload.add("next", commands.nothing)
    run = workload.run(workers=1, store=tmp_path / "run")
    commands.wait_for(said)
    wait_until(lambda: states(run)["job"] is JobState.RUNNING, 60)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: run.has_ended, 60)
    assert states(Run.attach(tmp_path / "run")) == {"job": "CANCELLED", "next": "READY"}
    assert row_of(run, "job")["error"] == "its master was killed while it ran; resume runs it again"
    again = Run.resume(tmp_path / "run").wait()
    assert states(again) == {"job": "DONE", "next": "DONE"}


# Records of an older plan


def test_a_late_record_of_an_older_plan_is_not_taken_for_a_job_of_the_new_one(
    tmp_path: Path,
) -> None:
    def a() -> None:
        raise ValueError("wrong")

    run_of(tmp_path / "run", a=a)
    store = Store(tmp_path / "run")
    journal = Journal(store)
    late = journal.new_segment("late")
    plan = journal.plan
    ending = Ending(0, 9, NO_FINGERPRINT, 1.0, 2.0, encode("of another plan"))
    SegmentWriter(store.segment(late), plan=plan - 1).append(ending)
    journal.catch_up()
    assert journal.entries()["a"].state is JobState.FAILED
    SegmentWriter(store.segment(late), plan=plan).append(ending)
    journal.catch_up()
    assert journal.entries()["a"].state is JobState.DONE
    journal.close()


# Who may read it


@pytest.fixture
def open_umask() -> Any:
    earlier = os.umask(0o000)
    yield
    os.umask(earlier)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_only_the_owner_can_read_what_is_in_a_store(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "given").mkdir(mode=0o755)
    workload = Workload().add("job", bytes, args=[INLINE_BYTES + 1]).add("b", print, args=["x"])
    for name, mode in (("given", 0o755), ("made", 0o700)):
        workload.run(kind=kind, workers=1, store=tmp_path / name).wait()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
        for path in (tmp_path / name).rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


# Stores of other versions


@pytest.mark.parametrize("spoiled", ["status", "options", "plan"])
def test_a_store_of_another_version_is_refused_by_name(tmp_path: Path, spoiled: str) -> None:
    run_of(tmp_path / "run", a=int)
    store = Store(tmp_path / "run")
    found = json.loads((store.folder / "status").read_bytes())
    if spoiled == "plan":
        (store.plan(1) / "plan.pickle").write_bytes(b"no pickle")
    else:
        (found if spoiled == "status" else found["options"])["new"] = 1
        (store.folder / "status").write_text(json.dumps(found))
    with pytest.raises(PyriteError, match="written by another version of Pyrite, or is damaged"):
        Run.resume(store.folder, executor=None)


def test_prune_removes_large_results_that_nothing_refers_to(tmp_path: Path) -> None:
    def large() -> bytes:
        return bytes(INLINE_BYTES + 1)

    executor = ThreadPoolExecutor(1)
    workload = Workload().add("large", large).add("small", int)
    for part in ({}, {"only": "large", "rerun": True}):
        options: dict[str, Any] = {"executor": executor, "store": tmp_path / "run", **part}
        run = workload.run(kind="transient", **options).wait()
    (tmp_path / "run" / "segments" / "000001-7-1-9.pickle").write_bytes(b"cut off")
    assert len(list(tmp_path.glob("run/segments/*.pickle"))) == 3
    assert Run.prune(tmp_path / "run").bytes > INLINE_BYTES
    assert len(list(tmp_path.glob("run/segments/*.pickle"))) == 1
    assert run.results["large"] == large()
