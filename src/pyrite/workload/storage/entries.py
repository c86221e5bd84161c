"""The entry of a job in the journal: its state, its last attempt and its result."""

from __future__ import annotations

from typing import NamedTuple

from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record
from pyrite.workload.storage.result_table import Found, Result


class Entry(NamedTuple):
    """The state of a job, its last attempt, and its result, which may be from an earlier run."""

    state: JobState = JobState.WAITING
    attempt: int = 0
    worker: str | None = None
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    segment: int | None = None
    offset: int | None = None  # of the record of the last attempt; None if it wrote none
    log_start: int = 0
    log_end: int = 0
    result: Found | None = None

    @property
    def seconds(self) -> float | None:
        """The duration of the last attempt, if it has ended."""
        return None if self.started is None or self.ended is None else self.ended - self.started


FRESH = Entry()


def with_record(
    entry: Entry, record: Record, *, segment: int, worker: str, error: str | None = None
) -> Entry:
    """The entry of a job after the attempt that the record describes."""
    result = entry.result
    if record.succeeded:
        seconds = record.ended - record.started
        result = Found(record.fingerprint, segment, record.offset, record.result_digest, seconds)
    state = JobState.DONE if record.succeeded else JobState.FAILED
    return Entry(
        JobState.WAITING if record.has_elements else state,  # a map waits for its branches
        record.attempt,
        worker,
        record.started,
        record.ended,
        error,
        segment,
        record.offset,
        record.log_start,
        record.log_end,
        result,
    )


def with_result(entry: Entry, result: Result) -> Entry:
    """The entry of a job that has a result of an earlier run."""
    return entry._replace(
        segment=result.segment,
        log_start=result.log_start,
        log_end=result.log_end,
        result=Found(*result[1:6]),
    )


def result_of(id: str, entry: Entry, parts: bytes = b"") -> Result:
    """The result of a job that is done."""
    assert entry.result is not None
    assert entry.ended is not None
    return Result(id, *entry.result, entry.log_start, entry.log_end, entry.ended, parts)
