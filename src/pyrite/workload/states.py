"""The states that a job goes through, and what a run does when a job fails for good."""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args


class JobState(str, Enum):
    WAITING = "WAITING"  # for upstream jobs
    READY = "READY"
    ASSIGNED = "ASSIGNED"  # to a worker that is busy with another job
    RUNNING = "RUNNING"
    DONE = "DONE"
    SKIPPED = "SKIPPED"  # nothing changed since it was done
    FAILED = "FAILED"
    CRASHED = "CRASHED"  # it killed its worker, each time
    TIMEOUT = "TIMEOUT"
    BLOCKED = "BLOCKED"  # by an upstream job that has no result
    CANCELLED = "CANCELLED"

    def __str__(self) -> str:
        return self.value

    @property
    def has_ended(self) -> bool:
        return self in ENDED

    @property
    def has_result(self) -> bool:
        return self in SUCCESSFUL

    @property
    def is_failure(self) -> bool:
        return self in FAILURES


SUCCESSFUL = frozenset({JobState.DONE, JobState.SKIPPED})
FAILURES = frozenset({JobState.FAILED, JobState.CRASHED, JobState.TIMEOUT})
ENDED = SUCCESSFUL | FAILURES | {JobState.BLOCKED, JobState.CANCELLED}

OnError = Literal["continue", "abridge", "stop"]
"""What a run does once a job has failed for good: `continue` runs every job that is not downstream
of it; `abridge` lets the jobs that are running come to their end and starts no other; `stop` ends
the running ones as well."""

ON_ERROR: tuple[str, ...] = get_args(OnError)
