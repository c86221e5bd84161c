"""How a failure, or a cancel, stops the tasklets of an execution, and how a failure is told to the
user."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from pyrite.errors import JobCancelled, JobFailed, PyriteError
from pyrite.functions import message_of, shorten


@dataclass(frozen=True, slots=True)
class Failed:
    """An error, and where it came from."""

    error: BaseException
    vertex: str | None = None
    processor: int | None = None
    edge: str | None = None
    item: Any = None

    def to_job_failed(self, job: str) -> JobFailed:
        """The error that the user sees; its cause is the user's own."""
        where = [f"vertex '{self.vertex}'"] if self.vertex is not None else []
        if self.processor is not None:
            where.append(f"processor {self.processor}")
        if self.edge is not None:
            where.append(f"edge {self.edge}")
        if self.item is not None:
            where.append(f"item {shorten(self.item)}")
        place = f" in {', '.join(where)}" if where else ""
        # A message of ours is a sentence that says it all; of any other error the type is half the
        # message.
        error = self.error
        what = str(error) if isinstance(error, PyriteError) else message_of(error)
        failed = JobFailed(
            f"{job} failed{place}: {what}",
            vertex=self.vertex,
            processor=self.processor,
            edge=self.edge,
            item=self.item,
        )
        failed.__cause__ = error
        return failed


class Halt:
    """The sign to stop that all tasklets of an execution look at. The first failure is kept, and
    wins over a cancel."""

    __slots__ = ("_lock", "_sealed", "cancelled", "failure", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self.cancelled = False
        self._sealed = False
        self.failure: Failed | None = None
        self._lock = threading.Lock()

    def fail(self, failure: Failed) -> None:
        with self._lock:
            if self.failure is None:
                self.failure = failure
            self.is_set = True

    def cancel(self) -> None:
        with self._lock:
            if not self._sealed:
                self.cancelled = True
                self.is_set = True

    def seal(self) -> bool:
        """From here on a cancel comes too late: what follows makes the outcome visible. False if
        there is a sign to stop already."""
        with self._lock:
            self._sealed = not self.is_set
            return self._sealed

    def error(self, job: str) -> JobFailed | JobCancelled | None:
        """What the job ends with, or None if it was let run to its end."""
        if self.failure is not None:
            return self.failure.to_job_failed(job)
        return JobCancelled(f"{job} was cancelled") if self.cancelled else None
