"""What the handle of a run returns: the rows of its table, the failed jobs, the results by id; and
the colours of the states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyrite.errors import PyriteError
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Store


class NoResult(PyriteError, KeyError):
    """The job has no result, or the run has no such job."""

    def __str__(self) -> str:  # KeyError shows the repr of its message
        return str(self.args[0])


class FailedJobs(list[Any]):
    """A list of rows. `in` also accepts a job id."""

    def __contains__(self, job: object) -> bool:
        return (
            super().__contains__(job)
            if isinstance(job, dict)
            else any(row["job"] == str(job) for row in self)
        )


class Results(Mapping[str, Any]):
    """The results by job id. `read` returns the result of a job; `ids` lists the jobs that have
    one."""

    def __init__(self, read: Callable[[str], Any], ids: Callable[[], Sequence[str]]) -> None:
        self._read = read
        self._ids = ids

    def __getitem__(self, job: str) -> Any:
        return self._read(job)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids())

    def __len__(self) -> int:
        return len(self._ids())

    def __repr__(self) -> str:
        return f"<results of {len(self)} jobs>"


COLORS = {
    JobState.WAITING: "#eeeeee",
    JobState.READY: "#dbe9f6",
    JobState.ASSIGNED: "#b7d4ea",
    JobState.RUNNING: "#ffe08a",
    JobState.DONE: "#a8d8a0",
    JobState.SKIPPED: "#d5ecd0",
    JobState.FAILED: "#f2a19a",
    JobState.CRASHED: "#d66a62",
    JobState.TIMEOUT: "#f4b183",
    JobState.BLOCKED: "#c9b3c9",
    JobState.CANCELLED: "#c8c8c8",
}


def cut_short(entry: Entry, store: Store) -> Entry:
    """The entry of a job in a run whose master was killed. The journal says what the master knew
    last, but nothing runs any more."""
    if entry.state is JobState.ASSIGNED:
        return entry._replace(
            state=JobState.READY,
            worker=None,
            error="its master was killed before it began; resume runs it",
        )
    if entry.state is not JobState.RUNNING:
        return entry
    size = store.log_size(entry.segment) if entry.segment is not None else 0
    return entry._replace(
        state=JobState.CANCELLED,
        error="its master was killed while it ran; resume runs it again",
        log_end=max(size, entry.log_end),
    )


def row_of(id: str, entry: Entry, *, selected: bool = True) -> dict[str, Any]:
    """`selected` is False for a job that is not in the run, which is of a part of the workload; its
    earlier result is used."""
    return {
        "job": id,
        "state": entry.state,
        "attempt": entry.attempt,
        "worker": entry.worker,
        "started": entry.started,
        "ended": entry.ended,
        "seconds": entry.seconds,
        "error": entry.error,
        "selected": selected,
    }
