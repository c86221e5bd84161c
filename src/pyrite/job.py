"""Job; and Execution, the handle of one run of a job. It is a future of the outcome and never
carries data."""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pyrite.dag import DAG, MakesDAG, dag_of
from pyrite.drawing.notebooks import DrawsItself
from pyrite.errors import JobCancelled, JobFailed, PyriteError
from pyrite.forks import repair_after_fork
from pyrite.functions import shorten
from pyrite.processors.dead_letters import with_dead_letters
from pyrite.processors.services.nesting import check_wait_for


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
    """How a normal or durable job is run.

    `members` is how many tasks run side by side; by default as many as Spark runs at a time. In a
    durable job it is how many parts a sequential task has; by default 8.
    `partitions` is how many parts the keys of partitioned edges are divided into; by default 271,
    or the next prime above four per member. More of them make smaller parts: a grouping holds one
    part of its keys in memory at a time.
    `tries` is how often a durable job tries a batch that raises, before the job fails; the death of
    a process does not count.
    `modules` (names, modules, paths of .py files or of packages), `wheels` and `files` travel to
    the workers and are seen by this job alone; a processor finds a file by `context.file(name)`.
    """

    name: str | None = None
    members: int | None = None
    partitions: int | None = None
    tries: int = 3
    modules: Sequence[str | Path | ModuleType] = ()
    wheels: Sequence[str | Path] = ()
    files: Sequence[str | Path] = ()

    def __post_init__(self) -> None:
        for field_name in ("members", "partitions", "tries"):
            number = getattr(self, field_name)
            is_int = isinstance(number, int) and not isinstance(number, bool)
            may_be_none = number is None and field_name != "tries"
            if not may_be_none and (not is_int or number < 1):
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
    """A DAG that can be executed any number of times. It can be pickled with cloudpickle; execute
    the restored job with `instance.execute(job)`."""

    dag: DAG
    config: JobConfig
    is_light: bool
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    is_durable: bool = False
    on_spark: bool = False
    """Whether a durable job is one task, which a peer runs on Spark."""
    _submit: Callable[[Job], Execution] | None = field(default=None, compare=False, repr=False)

    def execute(self) -> Execution:
        """Starts the job and returns the handle of this execution at once."""
        if self._submit is None:
            raise PyriteError(
                "this job was restored from a pickle and belongs to no instance; call "
                "instance.execute(job)"
            )
        with self.dag.naming_lines():
            return self._submit(self)

    @property
    def name(self) -> str:
        """The name of the job in messages."""
        if self.config.name is not None:
            return f"job '{self.config.name}'"
        kind = "light job" if self.is_light else "durable job" if self.is_durable else "job"
        return f"{kind} {self.id}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, (
            self.dag,
            self.config,
            self.is_light,
            self.id,
            self.is_durable,
            self.on_spark,
        )


def light_job(dag: DAG | MakesDAG, config: None, submit: Callable[[Job], Execution]) -> Job:
    """A light job of a DAG, checked."""
    if config is not None:
        raise PyriteError(
            f"a light job takes no name and no other configuration; got {shorten(config)}; use "
            "new_job for that"
        )
    return Job(_checked_dag(dag), JobConfig(), True, _submit=submit)


def normal_job(
    dag: DAG | MakesDAG, config: JobConfig | None, submit: Callable[[Job], Execution]
) -> Job:
    """A normal job of a DAG, checked."""
    if config is not None and not isinstance(config, JobConfig):
        raise PyriteError(f"the second argument of new_job is a JobConfig; got {shorten(config)}")
    return Job(_checked_dag(dag), config or JobConfig(), False, _submit=submit)


def durable_job(
    dag: DAG | MakesDAG,
    config: JobConfig | None,
    submit: Callable[[Job], Execution],
    *,
    on: Literal["peers", "spark"] = "peers",
) -> Job:
    """A durable job of a DAG, checked."""
    if on not in ("peers", "spark"):
        raise PyriteError(f"a durable job runs on='peers' or on='spark'; got on={shorten(on)}")
    if config is not None and not isinstance(config, JobConfig):
        raise PyriteError(
            f"the second argument of new_durable_job is a JobConfig; got {shorten(config)}"
        )
    return Job(
        _checked_dag(dag),
        config or JobConfig(),
        False,
        is_durable=True,
        on_spark=on == "spark",
        _submit=submit,
    )


def checked_job(job: Any, owner: str) -> Job:
    """Refuses what is no job."""
    if not isinstance(job, Job):
        raise PyriteError(f"{owner} executes a job, as new_job makes it; got {shorten(job)}")
    return job


def _checked_dag(dag: Any) -> DAG:
    found = dag_of(dag)
    if found is None:
        is_stage = hasattr(dag, "write_to")
        hint = "; end the stage with write_to(sink), and give its Pipeline" if is_stage else ""
        raise PyriteError(f"a job is made of a DAG or a Pipeline; got {shorten(dag)}{hint}")
    return with_dead_letters(found)


class Execution(Future[None], DrawsItself):
    """One run of a job: a future that is done once every processor has stopped and is closed.

    It is a `concurrent.futures.Future`, so `concurrent.futures.wait`, `as_completed` and
    `asyncio.wrap_future` take it. `result` returns None, or raises JobFailed or JobCancelled.

    A wait that could never end raises PyriteError: on a cooperative thread of the instance that
    runs this job, on the event loop that its async steps need, and in a process that was forked
    while the job ran.
    """

    def __init__(
        self,
        job: Job,
        *,
        run_callback: Callable[[Callable[[], None]], None],
        needs_this_thread: Callable[[], bool],
        is_here: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__()
        self._waiters: list[Any] = _Waiters(self)
        self._run_callback = run_callback
        self._needs_this_thread = needs_this_thread
        self._is_here = is_here
        """Whether its steps run in this process."""
        self.id = id or secrets.token_hex(8)
        self.job = job
        self.member: str | None = None
        """The address of the member that coordinates or drives it, as soon as one does; None if it
        runs in this process."""
        self.submitted = time.time()
        """When it was submitted, in seconds since 1970."""
        self.ended: float | None = None
        """When it ended, in seconds since 1970; None if it has not."""
        self._status = JobStatus.STARTING
        self._request_cancel: Callable[[], None] = lambda: None
        self._read_metrics: Callable[[], dict[str, Any]] = dict
        self._read_progress: Callable[[], list[tuple[str, int, int]]] = list
        self._read_timings: Callable[[], dict[str, float]] = dict
        self._read_waits_for: Callable[[], str | None] = lambda: None
        self._read_members: Callable[[], list[dict[str, Any]]] = list
        self._read_page: Callable[[], str | None] = lambda: None
        repair_after_fork(self)

    def result(self, timeout: float | None = None) -> None:
        """Waits until the job has ended. Raises JobFailed, JobCancelled, or TimeoutError if it has
        not ended in `timeout` seconds."""
        self._check_wait(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits until the job has ended. Returns its JobFailed or JobCancelled, or None."""
        self._check_wait(timeout)
        return super().exception(timeout)

    @property
    def status(self) -> JobStatus:
        """Where the job is now."""
        return self._status

    def cancel(self) -> bool:
        """Asks the job to stop and returns at once; False if the job had ended before. The future
        is done when everything has stopped."""
        if self.done():
            return False
        self._request_cancel()
        return True

    def add_done_callback(self, fn: Callable[[Future[None]], object]) -> None:
        """Calls `fn(execution)` when the job has ended, on a thread where it may block. If the job
        has ended already, calls it at once, on the calling thread."""
        super().add_done_callback(
            fn if self.done() else lambda _: self._run_callback(partial(_call, fn, self))
        )

    def cancelled(self) -> bool:
        return self._status is JobStatus.CANCELLED

    def metrics(self) -> dict[str, Any]:
        """By vertex: items received and emitted, items in its queues, and the time it was busy; in
        total and for each processor."""
        return self._read_metrics()

    def progress(self) -> list[tuple[str, int, int]]:
        """For each stage of a Spark job that has begun: its vertices, the number of tasks that are
        done, and the number of all tasks. For each task of a durable job: its name, the number of
        parts that are complete, and the number of all parts."""
        return self._read_progress()

    def waits_for(self) -> str | None:
        """What a durable job waits for, as a sentence without subject; None if for nothing."""
        return self._read_waits_for()

    def timings(self) -> dict[str, float]:
        """The seconds that a Spark job spent on each of `session`, `stages` and `commit`."""
        return self._read_timings()

    def members(self) -> list[dict[str, Any]]:
        """What is known of the processes that the job runs in now: for each, `member` (its name or
        number), `host`, `pid` and `memory_bytes`, the memory that it takes."""
        return self._read_members()

    @property
    def runs_here(self) -> bool:
        """Whether its steps run in this process."""
        return self._is_here

    def page(self) -> str | None:
        """The address of Spark's own web page of the job; None if there is none."""
        return self._read_page()

    def __repr__(self) -> str:
        return f"<Execution {self.id} of {self.job.name}: {self._status.value}>"

    def _repr_html_(self) -> str:
        from pyrite.watching.notebook.executions import execution_html

        return execution_html(self)

    def _ipython_display_(self) -> None:
        from pyrite.watching.notebook.executions import show_execution

        show_execution(self)

    def _check_wait(self, timeout: float | None) -> None:
        """Refuses a wait on a thread that the job itself needs. With several cooperative threads
        it would depend on chance which of them the job needs, so all of them refuse."""
        if (timeout is not None and timeout <= 0) or self.done():
            return
        if self._is_here:
            check_wait_for(self.job.dag)
        if self._needs_this_thread():
            raise PyriteError(
                f"{self.job.name} cannot be waited for on a cooperative thread of the instance "
                "that runs it: the thread that waits is the one that must run the job. Wait for it "
                "outside of the function, in add_done_callback(), or in a processor with "
                "cooperative = False"
            )

    # What follows is for the engines.

    def after_fork(self) -> None:
        """A job that runs in the parent process does not run in the child, and never ends there."""
        self._condition = threading.Condition()
        self._waiters = _Waiters(self)
        self._done_callbacks: list[Any] = []
        if not self.done():
            self.set_exception(
                PyriteError(
                    f"{self.job.name} runs in process {os.getppid()}, which this process was "
                    "forked from: wait for it there, or execute the job again here"
                )
            )

    def wire(
        self,
        *,
        cancel: Callable[[], None],
        metrics: Callable[[], dict[str, Any]],
        progress: Callable[[], list[tuple[str, int, int]]] = list,
        timings: Callable[[], dict[str, float]] = dict,
        waits_for: Callable[[], str | None] = lambda: None,
        members: Callable[[], list[dict[str, Any]]] = list,
        page: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._request_cancel = cancel
        self._read_metrics = metrics
        self._read_progress = progress
        self._read_timings = timings
        self._read_waits_for = waits_for
        self._read_members = members
        self._read_page = page

    def running(self) -> bool:
        return self._status is JobStatus.RUNNING

    def now_running(self) -> None:
        self._status = JobStatus.RUNNING

    def end(self, error: BaseException | None, *, ended: float | None = None) -> None:
        """`ended` is when it ended, if that was not now."""
        self.ended = time.time() if ended is None else ended
        if error is None:
            self._status = JobStatus.COMPLETED
            self.set_result(None)
        else:
            self._status = (
                JobStatus.CANCELLED if isinstance(error, JobCancelled) else JobStatus.FAILED
            )
            if isinstance(error, JobFailed) and error.vertex and error.vertex in self.job.dag:
                if error.replayable is not None:
                    error.replayable = error.replayable.in_dag(self.job.dag)
                origin = self.job.dag[error.vertex].origin
                if origin is not None:
                    error.args = (f"{error} (the step was added in {origin})",)
            self.set_exception(error)


class _Waiters(list[Any]):
    """The waiters of a future. `concurrent.futures.wait` and `as_completed` add themselves here
    before they block, without calling any method of the future."""

    def __init__(self, execution: Execution) -> None:
        self._execution = weakref.ref(execution)  # no cycle: memory is free as soon as it can be

    def append(self, waiter: Any) -> None:
        execution = self._execution()
        if execution is not None:
            execution._check_wait(None)
        super().append(waiter)
