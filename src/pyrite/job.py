"""Job, and Execution: the handle of one run of a job, which is a future of its outcome and never
carries its data."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pyrite.dag import DAG
from pyrite.errors import JobCancelled, PyriteError
from pyrite.functions import shorten


def _call(fn: Callable[[Any], object], argument: Any) -> None:
    fn(argument)


class JobStatus(str, Enum):
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """How a normal job is run.

    `members` is how many tasks run side by side; by default as many as Spark runs at a time.
    `partitions` is how many parts the keys of partitioned edges are divided into; by default 271,
    or the next prime above four per member. More of them make smaller parts: a grouping holds one
    part of its keys in memory at a time.
    `modules` (names, modules, paths of .py files or of packages), `wheels` and `files` travel to
    the workers and are seen by this job alone; a processor finds a file by `context.file(name)`.
    """

    name: str | None = None
    members: int | None = None
    partitions: int | None = None
    modules: Sequence[str | Path | ModuleType] = ()
    wheels: Sequence[str | Path] = ()
    files: Sequence[str | Path] = ()

    def __post_init__(self) -> None:
        for field_name in ("members", "partitions"):
            number = getattr(self, field_name)
            is_int = isinstance(number, int) and not isinstance(number, bool)
            if number is not None and (not is_int or number < 1):
                raise PyriteError(
                    f"{field_name} of a job must be a whole number above 0; got {shorten(number)}"
                )
        for field_name in ("modules", "wheels", "files"):
            if isinstance(getattr(self, field_name), (str, bytes)):
                raise PyriteError(
                    f"{field_name} of a job must be a list; got "
                    f"{shorten(getattr(self, field_name))}"
                )
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise PyriteError(
                f"the name of a job must be a non-empty string; got {shorten(self.name)}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A DAG that can be executed, any number of times. It pickles (with cloudpickle); an instance
    then executes it by `execute(job)`."""

    dag: DAG
    config: JobConfig
    is_light: bool
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    _submit: Callable[[Job], Execution] | None = field(default=None, compare=False, repr=False)

    def execute(self) -> Execution:
        """Starts the job and returns at once with the handle of this execution."""
        if self._submit is None:
            raise PyriteError(
                "this job was restored from a pickle and belongs to no instance; call "
                "instance.execute(job)"
            )
        return self._submit(self)

    @property
    def name(self) -> str:
        """How messages name the job."""
        if self.config.name is not None:
            return f"job '{self.config.name}'"
        return f"{'light job' if self.is_light else 'job'} {self.id}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, (self.dag, self.config, self.is_light, self.id)


class Execution(Future[None]):
    """One run of a job: a future that is done once every processor has stopped and is closed.

    It is a `concurrent.futures.Future`, so `concurrent.futures.wait`, `as_completed` and
    `asyncio.wrap_future` take it. `result` returns None, or raises JobFailed or JobCancelled.
    """

    def __init__(self, job: Job, *, run_callback: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._run_callback = run_callback
        self.id = secrets.token_hex(8)
        self.job = job
        self._status = JobStatus.STARTING
        self._request_cancel: Callable[[], None] = lambda: None
        self._read_metrics: Callable[[], dict[str, Any]] = dict
        self._read_progress: Callable[[], list[tuple[str, int, int]]] = list
        self._read_timings: Callable[[], dict[str, float]] = dict

    @property
    def status(self) -> JobStatus:
        return self._status

    def cancel(self) -> bool:
        """Asks the job to stop, and returns at once: False if it had ended already. The future is
        done when everything has stopped."""
        if self.done():
            return False
        self._request_cancel()
        return True

    def add_done_callback(self, fn: Callable[[Future[None]], object]) -> None:
        """Calls `fn(execution)` when the job has ended, on a thread that may block; at once if it
        has ended already."""
        super().add_done_callback(
            fn if self.done() else lambda _: self._run_callback(partial(_call, fn, self))
        )

    def cancelled(self) -> bool:
        return self._status is JobStatus.CANCELLED

    def metrics(self) -> dict[str, Any]:
        """By vertex: items received and emitted, how full its queues are, the time it was busy; for
        all its processors, and for each."""
        return self._read_metrics()

    def progress(self) -> list[tuple[str, int, int]]:
        """For each stage of a job on Spark that has begun: its vertices, how many of its tasks are
        done, and how many there are."""
        return self._read_progress()

    def timings(self) -> dict[str, float]:
        """Where the time of a job on Spark went, in seconds: `session`, `stages`, `commit`."""
        return self._read_timings()

    def __repr__(self) -> str:
        return f"<Execution {self.id} of {self.job.name}: {self._status.value}>"

    # What follows is for the engines.

    def wire(
        self,
        *,
        cancel: Callable[[], None],
        metrics: Callable[[], dict[str, Any]],
        progress: Callable[[], list[tuple[str, int, int]]] = list,
        timings: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self._request_cancel = cancel
        self._read_metrics = metrics
        self._read_progress = progress
        self._read_timings = timings

    def running(self) -> bool:
        return self._status is JobStatus.RUNNING

    def now_running(self) -> None:
        self._status = JobStatus.RUNNING

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self._status = JobStatus.COMPLETED
            self.set_result(None)
        else:
            self._status = (
                JobStatus.CANCELLED if isinstance(error, JobCancelled) else JobStatus.FAILED
            )
            self.set_exception(error)
