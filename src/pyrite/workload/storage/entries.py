"""The entry of a job in the journal: its state, its last attempt and its result."""

from __future__ import annotations

from typing import NamedTuple

from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record
from pyrite.workload.storage.result_table import Result


class Entry(NamedTuple):
    """The state of a job and its last attempt. The fields from `fingerprint` on describe its
    result, which may be from an earlier run; the last four are in the table of results."""

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
    fingerprint: bytes | None = None
    result_segment: int | None = None
    result_offset: int | None = None
    result_digest: bytes | None = None
    result_seconds: float | None = None

    @property
    def seconds(self) -> float | None:
        """The duration of the last attempt, if it has ended."""
        return None if self.started is None or self.ended is None else self.ended - self.started


FRESH = Entry()
OWN_FIELDS = Entry._fields[: Entry._fields.index("fingerprint") + 1]
"""The fields that are in the table of jobs; the others are in the table of results."""


def with_record(
    entry: Entry, record: Record, *, segment: int, worker: str, error: str | None = None
) -> Entry:
    """The entry of a job after the attempt that the record describes."""
    if not record.succeeded:
        result = entry[10:]
    else:
        result = (
            record.fingerprint,
            segment,
            record.offset,
            record.result_digest,
            record.ended - record.started,
        )
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
        *result,
    )


def with_result(entry: Entry, result: Result) -> Entry:
    """The entry of a job that has a result of an earlier run."""
    return entry._replace(
        segment=result.segment,
        log_start=result.log_start,
        log_end=result.log_end,
        fingerprint=result.fingerprint,
        result_segment=result.segment,
        result_offset=result.offset,
        result_digest=result.digest,
        result_seconds=result.seconds,
    )


def result_of(id: str, entry: Entry, parts: bytes = b"") -> Result:
    """The result of a job that is done."""
    assert entry.fingerprint is not None
    assert entry.result_segment is not None
    assert entry.result_offset is not None
    assert entry.result_digest is not None
    assert entry.result_seconds is not None
    assert entry.ended is not None
    return Result(
        id,
        entry.fingerprint,
        entry.result_segment,
        entry.result_offset,
        entry.result_digest,
        entry.result_seconds,
        entry.log_start,
        entry.log_end,
        entry.ended,
        parts,
    )
