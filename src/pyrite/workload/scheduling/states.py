"""The states of a job, and what a run does when a job has failed for the last time."""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args


class JobState(str, Enum):
    """The state of a job of a workload."""

    WAITING = "WAITING"  # its upstream jobs have not finished
    READY = "READY"
    ASSIGNED = "ASSIGNED"  # it waits in the queue of a worker that runs another job
    RUNNING = "RUNNING"
    DONE = "DONE"
    SKIPPED = "SKIPPED"  # it is up to date
    FAILED = "FAILED"
    CRASHED = "CRASHED"  # its worker died in every attempt
    TIMEOUT = "TIMEOUT"
    BLOCKED = "BLOCKED"  # an upstream job failed
    CANCELLED = "CANCELLED"

    def __str__(self) -> str:
        return self.value

    @property
    def has_ended(self) -> bool:
        """Whether the job will not run any more."""
        return self in ENDED

    @property
    def has_result(self) -> bool:
        """Whether the job has a result, of this run or of an earlier one."""
        return self in SUCCESSFUL

    @property
    def is_failure(self) -> bool:
        """Whether the job failed, crashed, or took too long."""
        return self in FAILURES


SUCCESSFUL = frozenset({JobState.DONE, JobState.SKIPPED})
FAILURES = frozenset({JobState.FAILED, JobState.CRASHED, JobState.TIMEOUT})
ENDED = SUCCESSFUL | FAILURES | {JobState.BLOCKED, JobState.CANCELLED}

OnError = Literal["continue", "abridge", "stop"]
"""What a run does when a job has failed and has no retries left: `continue` runs all jobs that are
not downstream of it; `abridge` lets the running jobs finish and starts no others; `stop` also stops
the running jobs."""

ON_ERROR: tuple[str, ...] = get_args(OnError)
