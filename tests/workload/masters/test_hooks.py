"""on_end: functions that are called when a job or the run has ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import InvalidWorkload, JobState, Run, Workload
from tests.workload import commands
from tests.workload.conftest import wait_until


def note_row(row: dict[str, Any]) -> None:
    commands.note(os.environ["ROWS"], f"{row['job']} {row['state']} {row['attempt']}")


def note_run(run: Run) -> None:
    counts = sorted(f"{count} {state}" for state, count in run.counts().items())
    commands.note(os.environ["ROWS"], f"run {run.status.phase}: {', '.join(counts)}")


def break_rules(row: dict[str, Any]) -> None:
    if row["job"] == "raises":
        raise ValueError("a hook that fails")
    if row["job"] == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if row["job"] == "exits":
        sys.exit(3)
    note_row(row)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROWS", str(tmp_path / "rows"))
    return tmp_path / "rows"


def when_last(rows: Path, start: str) -> list[str]:
    """The lines, once the last one is there."""
    wait_until(lambda: any(line.startswith(start) for line in commands.lines(rows)), 60)
    return commands.lines(rows)


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_hooks_are_called_in_the_order_of_the_ends_and_the_runs_last(
    rows: Path, tmp_path: Path, kind: Any
) -> None:
    workload = Workload()
    for name, above in (("a", ()), ("b", ("a",)), ("c", ("b",))):
        workload.add(name, commands.nothing, after=above, on_end=note_row)
    marker = str(tmp_path / "tries")
    workload.add(
        "bad", commands.fail_until, args=[marker, 9], retries=1, after="c", on_end=note_row
    )
    workload.add("below", commands.nothing, after="bad", on_end=note_row)
    workload.run(kind=kind, store=tmp_path / "run", workers=1, on_end=note_run).wait(60)
    assert when_last(rows, "run") == [
        *("a DONE 1", "b DONE 1", "c DONE 1", "bad FAILED 2", "below BLOCKED 0"),
        "run ended: 1 BLOCKED, 1 FAILED, 3 DONE",
    ]


def test_a_hook_that_breaks_does_not_harm_the_run_or_the_other_hooks(
    rows: Path, tmp_path: Path
) -> None:
    workload = Workload()
    ids = ["raises", "kills", "exits", "good"]
    for above, name in zip(["", *ids], ids):
        workload.add(name, commands.nothing, after=above or None, on_end=break_rules)
    run = workload.run(store=tmp_path / "run", workers=1).wait(60)
    assert not run.failed()
    assert when_last(rows, "good") == ["good DONE 1"]
    log = (tmp_path / "run" / "hooks.log").read_text()
    assert "the on_end hook of job 'raises' raised an exception:" in log
    assert "ValueError: a hook that fails" in log
    assert "the on_end hook of job 'kills' ended its process (SIGKILL)" in log


def hang(run: Run) -> None:
    time.sleep(1000)


def wait_for_release(row: dict[str, Any]) -> None:
    wait_until(Path(os.environ["ROWS"] + ".release").exists, 60)


def test_the_hook_of_a_run_gets_that_run_although_another_one_has_begun_in_its_store(
    rows: Path, tmp_path: Path
) -> None:
    first = Workload().add("first", commands.nothing, on_end=wait_for_release)
    first.run(store=tmp_path / "run", workers=1, on_end=note_run).wait(60)
    second = Workload().add("a", commands.nothing).add("b", commands.nothing)
    second.run(store=tmp_path / "run", workers=1).wait(60)
    Path(f"{rows}.release").touch()
    assert when_last(rows, "run") == ["run ended: 1 DONE"]


def test_a_hook_that_hangs_does_not_delay_the_run_and_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYRITE_HOOK_SECONDS", "1")
    run = Workload().add("a", commands.nothing).run(store=tmp_path / "run", on_end=hang).wait(60)
    assert run.has_ended
    log = tmp_path / "run" / "hooks.log"
    wait_until(lambda: "the on_end hook of the run did not end in time" in log.read_text(), 60)


def test_hooks_are_kept_for_the_run_that_is_resumed_and_told_of_a_cancelled_one(
    rows: Path, tmp_path: Path
) -> None:
    said, awaited = str(tmp_path / "said"), str(tmp_path / "awaited")
    workload = Workload().add("a", commands.nothing, on_end=note_row)
    workload.add("b", commands.tell_and_wait, args=[said, awaited], after="a", on_end=note_row)
    run = workload.run(store=tmp_path / "run", workers=1, on_end=note_run)
    wait_until(lambda: bool(commands.lines(said)), 60)
    run.cancel()
    expected = ["a DONE 1", "b CANCELLED 1", "run cancelled: 1 CANCELLED, 1 DONE"]
    assert when_last(rows, "run cancelled") == expected
    Path(awaited).touch()
    Run.resume(tmp_path / "run").wait(60)
    assert when_last(rows, "run ended") == [*expected, "b DONE 2", "run ended: 2 DONE"]


def test_a_run_without_a_store_keeps_it_until_its_hooks_have_ended(rows: Path) -> None:
    Workload().add("a", commands.nothing).run(on_end=note_run).wait(60)
    assert when_last(rows, "run") == ["run ended: 1 DONE"]


def test_hooks_that_cannot_be_called_are_refused_before_the_start() -> None:
    workload = Workload().add("a", commands.nothing, on_end=["echo"])
    workload.add("b", commands.nothing, on_end=commands.nothing)
    with pytest.raises(InvalidWorkload) as caught:
        workload.run(on_end="nowhere:f")
    first, second, third = caught.value.problems
    assert first.startswith("job 'a' has on_end=['echo'], which must be a function or a string")
    assert "is called with one argument, the row of the job, but it takes 0" in second
    assert third.startswith("the run has on_end='nowhere:f', which is 'nowhere:f', which cannot be")


def test_a_job_without_a_hook_starts_no_process(tmp_path: Path) -> None:
    run = Workload().add("a", commands.nothing).run(store=tmp_path / "run", workers=1).wait(60)
    assert run.table()[0]["state"] is JobState.DONE
    assert not list((tmp_path / "run").glob("hooks*"))


def hang_once(row: dict[str, Any]) -> None:
    if not os.path.exists("resumed"):
        commands.note(os.environ["ROWS"], f"begun {row['job']}")
        Path("gate").read_text()
    note_row(row)


def test_hooks_that_were_due_when_the_master_was_killed_are_called_when_the_run_is_resumed(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("gate")
    workload = Workload().add("first", commands.nothing, on_end=note_row)
    workload.add("a", commands.nothing, after="first", on_end=hang_once)
    workload.add("b", commands.nothing, after="a", on_end=hang_once)
    workload.add("c", ["sh", "-c", "test -e resumed || cat gate"], after="b", on_end=note_row)
    run = workload.run(workers=1, store="run", on_end=note_run)
    when_last(rows, "begun a")
    wait_until(lambda: run.table()[3]["state"] is JobState.RUNNING, 60)
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    Path("resumed").touch()
    Run.resume("run").wait()
    lines = when_last(rows, "run ended")
    assert lines == ["first DONE 1", "begun a", "a DONE 1", "b DONE 1", *lines[4:]]
    assert [line.split()[0] for line in lines[4:]] == ["c", "run"]
