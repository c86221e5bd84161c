"""What people see of a run: the error for failed jobs, the output of a running job."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrite.errors import PyriteError
from pyrite.workload import JobsFailed, JobState, Workload
from pyrite.workload.input.fingerprints import NO_FINGERPRINT
from pyrite.workload.storage.cleanup_queue import Ending, SegmentWriter
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Store
from pyrite.workload.views.failures import not_done, raise_for_failures
from pyrite.workload.views.following import follow
from tests.workload import commands


def row(job: str, state: JobState, error: str | None = None) -> dict[str, Any]:
    return {"job": job, "state": state, "error": error}


def test_a_run_without_failures_is_returned_and_one_with_failures_raises(tmp_path: Path) -> None:
    workload = Workload().add("good", commands.nothing)
    run = workload.run(workers=1, store=tmp_path / "s").wait()
    assert run.raise_for_failures() is run
    workload.add("bad", commands.fail).add("below", commands.nothing, after="bad")
    run = workload.run(workers=1, store=tmp_path / "s").wait()
    with pytest.raises(JobsFailed) as raised:
        run.raise_for_failures()
    assert isinstance(raised.value, PyriteError)
    assert [job["job"] for job in raised.value.jobs] == ["bad", "below"]
    message = str(raised.value)
    assert "2 of 3 jobs are not done:" in message
    assert "job 'bad' is FAILED: ValueError: on purpose" in message
    assert "job 'below' is BLOCKED: a job upstream of it failed" in message
    assert f"run: pyrite workload log {run.store} -- bad" in message


def test_at_most_ten_jobs_are_named_and_failures_come_first() -> None:
    rows = [row(f"b{n}", JobState.BLOCKED) for n in range(16)]
    rows.append(row("x", JobState.CRASHED, "it died"))
    with pytest.raises(JobsFailed, match=r"(?s)job 'x' is CRASHED.*job 'b8'.*and 7 others") as one:
        raise_for_failures(rows, Path("s"), has_ended=True)
    assert "b9" not in str(one.value)
    assert pickle.loads(pickle.dumps(one.value)).jobs == one.value.jobs


def test_jobs_that_may_still_run_count_only_when_the_run_has_ended() -> None:
    rows = [row("a", JobState.RUNNING), row("b", JobState.DONE), row("c", JobState.CANCELLED)]
    assert [r["job"] for r in not_done(rows, has_ended=False)] == ["c"]
    assert [r["job"] for r in not_done(rows, has_ended=True)] == ["a", "c"]


class Watched:
    """A job of which a test says what it writes and how it ends; `follow` pauses for each step."""

    def __init__(self, folder: Path) -> None:
        (folder / "logs").mkdir()
        (folder / "segments").mkdir()
        self.store = Store(folder)
        self.entry = Entry(JobState.RUNNING, 1, "w1", 0.0, segment=1, log_start=5)
        self.writer = SegmentWriter(self.store.segment(1), plan=1)
        self.prints("other", into=1)

    def prints(self, text: str, *, into: int) -> None:
        with open(self.store.log(into), "a") as file:
            file.write(text)

    def records(self, *, attempt: int, log_end: int) -> None:
        ending = Ending(7, attempt, NO_FINGERPRINT, 0.0, 1.0, None, log_end=log_end)
        self.writer.append(ending)

    def followed(self, *steps: Callable[[], None]) -> list[tuple[int, str]]:
        left = iter(steps)
        return list(
            follow(
                self.store,
                7,
                lambda: self.entry,
                lambda: False,
                pause=lambda seconds: next(left)(),
            )
        )

    def is_now(self, state: JobState, **fields: Any) -> None:
        self.entry = self.entry._replace(state=state, **fields)


def test_the_output_of_other_jobs_of_the_worker_is_not_followed(tmp_path: Path) -> None:
    job = Watched(tmp_path)

    def next_job_prints_before_the_journal_knows() -> None:
        job.prints("mine", into=1)
        job.records(attempt=1, log_end=9)
        job.prints("NOT MINE", into=1)

    pieces = job.followed(
        next_job_prints_before_the_journal_knows,
        lambda: job.is_now(JobState.DONE, ended=1.0, log_end=9),
    )
    assert pieces == [(1, "mine")]


def test_each_attempt_is_followed_to_its_end(tmp_path: Path) -> None:
    job = Watched(tmp_path)

    def fails_and_starts_again_elsewhere() -> None:
        job.prints("first", into=1)
        job.records(attempt=1, log_end=10)
        job.prints("NOT MINE", into=1)
        job.prints("second ", into=2)
        job.is_now(JobState.RUNNING, attempt=2, segment=2, log_start=0)

    pieces = job.followed(
        lambda: job.is_now(JobState.RUNNING),
        fails_and_starts_again_elsewhere,
        lambda: job.is_now(JobState.TIMEOUT, ended=2.0, log_end=7),
    )
    assert pieces == [(1, "first"), (2, "second ")]
