"""How a failure or a cancel stops the tasklets of an execution, and how the failure is reported to
the user."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from pyrite.errors import JobCancelled, JobFailed, PyriteError
from pyrite.functions import message_of, shorten
from pyrite.processors.loops.replaying import Replay
from pyrite.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class Failed:
    """An error, and where it came from."""

    error: BaseException
    vertex: str | None = None
    processor: int | None = None
    edge: str | None = None
    item: Any = None
    why_no_item: str | None = None
    """Why `item` is only a description, if the item itself did not travel."""
    supplier: Any = None
    """That of the vertex, if it is known where it failed; or as bytes, if it has travelled."""
    is_result: bool = False
    """Whether the item is a result that the vertex was about to emit."""

    @staticmethod
    def of(error: BaseException) -> Failed:
        """The failure that an error of a job stands for."""
        if isinstance(error, JobFailed) and error.__cause__ is not None:
            failed = Failed(error.__cause__, error.vertex, error.processor, error.edge, error.item)
            again = error.replayable
            if isinstance(again, Replay):
                return replace(
                    failed,
                    why_no_item=again.why_no_item,
                    supplier=again.packed if again.supplier is None else again.supplier,
                    is_result=again.is_result,
                )
            return failed
        return Failed(error)

    def to_job_failed(self, job: str) -> JobFailed:
        """The error that the user sees; its `__cause__` is the user's own exception."""
        where = [f"vertex '{self.vertex}'"] if self.vertex is not None else []
        if self.processor is not None:
            where.append(f"processor {self.processor}")
        if self.edge is not None:
            where.append(f"edge {self.edge}")
        if self.item is not None:
            where.append(f"item {shorten(self.item)}")
        place = f" in {', '.join(where)}" if where else ""
        # An error of Pyrite has a complete sentence. Other errors often make sense only together
        # with their type.
        error = self.error
        what = str(error) if isinstance(error, PyriteError) else message_of(error)
        failed = JobFailed(
            f"{job} failed{place}: {what}",
            vertex=self.vertex,
            processor=self.processor,
            edge=self.edge,
            item=self.item,
            replayable=self._replayable(),
        )
        failed.__cause__ = error
        return failed

    def _replayable(self) -> Replay:
        is_packed = isinstance(self.supplier, bytes)
        return Replay(
            vertex=self.vertex,
            item=self.item,
            edge=self.edge,
            why_no_item=self.why_no_item,
            is_result=self.is_result,
            supplier=None if is_packed else self.supplier,
            packed=self.supplier if is_packed else None,
        )


class Halt:
    """The stop flag that all tasklets of an execution check. The first failure is kept; it takes
    precedence over a cancel."""

    __slots__ = ("_lock", "_sealed", "cancelled", "failure", "is_set", "run")

    def __init__(self) -> None:
        self.is_set = False
        self.cancelled = False
        self._sealed = False
        self.failure: Failed | None = None
        self.run: Whereabouts | None = None
        """The job and the execution, for the log."""
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
        """Makes later cancels ineffective, because the outcome is about to become visible. Returns
        False if the execution was stopped before."""
        with self._lock:
            self._sealed = not self.is_set
            return self._sealed

    def error(self, job: str) -> JobFailed | JobCancelled | None:
        """The error that the job ends with, or None if it completed."""
        if self.failure is not None:
            return self.failure.to_job_failed(job)
        return JobCancelled(f"{job} was cancelled") if self.cancelled else None
