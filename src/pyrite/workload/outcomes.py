"""What the handle of a run returns: the rows of its table, the failed jobs, the results by id; and
the colours of the states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyrite.errors import PyriteError
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.journal import Entry

if TYPE_CHECKING:
    from pyrite.workload.run import Run


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
    def __init__(self, run: Run) -> None:
        self._run = run

    def __getitem__(self, job: str) -> Any:
        return self._run.result_of(job)

    def __iter__(self) -> Iterator[str]:
        return (row["job"] for row in self._run.table() if row["state"].has_result)

    def __len__(self) -> int:
        return sum(1 for _ in self)

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


def row_of(id: str, entry: Entry) -> dict[str, Any]:
    seconds = (
        entry.ended - entry.started
        if entry.ended is not None and entry.started is not None
        else None
    )
    return {
        "job": id,
        "state": entry.state,
        "attempt": entry.attempt,
        "worker": entry.worker,
        "started": entry.started,
        "ended": entry.ended,
        "seconds": seconds,
        "error": entry.error,
    }
