"""The master of transient workers: a thread in the user's process that submits each job to an
executor.

When an executor breaks, it does not tell which job killed its worker, so all jobs that it was
running are suspects. Suspects then run one at a time, so that only the job that kills its worker is
blamed.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

from pyrite.errors import RunBroken
from pyrite.functions import message_of
from pyrite.workload.input.options import Options
from pyrite.workload.masters.conductor import Conductor
from pyrite.workload.scheduling.scheduler import Cause
from pyrite.workload.storage.cleanup_queue import Ending, SegmentWriter, head
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.places import readers
from pyrite.workload.storage.private import open_private
from pyrite.workload.storage.store import Commands, Status, Store
from pyrite.workload.system import processes
from pyrite.workload.system.alive import Identity
from pyrite.workload.system.copies import OwnFile
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers.doing import span_of
from pyrite.workload.workers.executors import KillableExecutor, ProcessExecutor, WorkerDied
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.tasks import Outcome, Task, run_task

LOOK_SECONDS = 0.5  # how often it looks whether another process wants to cancel the run
LEAVING_SECONDS = 5.0

MakeExecutor = Callable[[], Executor]


@dataclass(slots=True)
class _Flight:
    """A job that was submitted to the executor and has not come back."""

    order: Order
    worker: str
    future: Future[Outcome]
    executor: Executor
    ended_by: str = ""  # why it was stopped, if it was


class TransientMaster:
    def __init__(
        self,
        store: Store,
        options: Options,
        status: Status,
        executor: Executor | MakeExecutor | None,
        *,
        lock: int,
        origin: Origin,
    ) -> None:
        self._store = store
        self._lock = OwnFile(lock)  # so that the processes of a pool that forks do not hold it
        store.write_status(status)
        self._options = options
        self._origin = origin
        self._status = status
        self._supply = _Supply(executor, options, origin)
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._flights: dict[str, _Flight] = {}
        self._suspects: set[int] = set()
        self._names = 0
        self._thread = threading.Thread(
            target=self._run_and_tell, name="workload master", daemon=True
        )
        self._thread.start()
        atexit.register(self._end_with_the_interpreter)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def join(self, seconds: float | None) -> bool:
        """Waits up to `seconds` for the run to end. Returns whether it has ended."""
        self._thread.join(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        return self.has_ended

    def _run_and_tell(self) -> None:
        """Runs until every job has ended, and writes the final status."""
        status = self._status
        try:
            self._journal = Journal(
                self._store
            )  # in this thread: a SQLite connection belongs to the thread that opened it
            try:
                status = replace(status, phase=self._run())
            finally:
                self._supply.close(ends_all=bool(self._flights))
                self._journal.close()
        except BaseException as error:
            status = status.broken_by(error)
        try:
            self._store.write_status(replace(status, ended=time.time()))
        finally:
            self._lock.close()
            atexit.unregister(self._end_with_the_interpreter)

    def _end_with_the_interpreter(self) -> None:
        self.cancel()
        self._thread.join(LEAVING_SECONDS)

    def cancel(self) -> None:
        """Cancels the run. May be called from any thread."""
        self._events.put(lambda: self._conductor.cancel())

    def _run(self) -> str:
        with ExitStack() as opened:
            self._segment = self._journal.new_segment("transient")
            writer = SegmentWriter(self._store.segment(self._segment), plan=self._journal.plan)
            self._writer = opened.enter_context(closing(writer))
            self._plan = self._store.read_plan(self._journal.plan)
            commands = Commands(self._store.plan(self._journal.plan))
            self._commands = opened.enter_context(closing(commands))
            self._conductor = Conductor(
                self._store, self._plan, self._journal, self._options, depth=1
            )
            try:
                self._run_jobs()
            except RunBroken:
                self._conductor.salvage()
                raise
        return self._conductor.phase

    def _run_jobs(self) -> None:
        self._conductor.flush()
        while not self._conductor.has_ended():
            self._send_out()
            if self._conductor.has_ended():
                break
            self._end_overdue()
            self._conductor.flush_if_due(time.monotonic())
            self._wait()
            if self._conductor.stops_running_jobs:
                for flight in list(self._flights.values()):
                    self._end(
                        flight, "it was stopped while it ran, because the run ended", cause="cancel"
                    )
        self._conductor.flush()

    # Submitting jobs

    def _send_out(self) -> None:
        """Submits the jobs that can start now, each as a worker of its own."""
        while len(self._flights) < (
            1 if self._suspects else self._supply.capacity(self._options.workers)
        ):
            worker = f"t{self._names + 1}"
            self._conductor.joined(worker)
            orders = self._conductor.assign(time.monotonic(), time.time())
            if not orders:
                self._conductor.left(worker)
                return
            self._names += 1
            self._submit(*orders[0])

    def _submit(self, worker: str, order: Order) -> None:
        executor = self._supply.get()
        try:
            future = executor.submit(run_task, self._task(order))
        except BrokenExecutor:
            self._supply.renew(executor)
            self._conductor.lost(worker, time.monotonic())
            return
        except RuntimeError as error:
            if "interpreter shutdown" not in str(error):
                raise RunBroken(
                    f"the executor accepts no more jobs ({error}); do not shut it down before the "
                    "run has ended"
                ) from error
            # The interpreter is shutting down, and its pools accept no more calls.
            self._conductor.cancel()
            self._died(worker, "cancel", "the interpreter ended")
            return
        self._supply.guard(executor)
        flight = self._flights[worker] = _Flight(order, worker, future, executor)
        future.add_done_callback(lambda _: self._events.put(lambda: self._came_back(flight)))

    def _task(self, order: Order) -> Task:
        blob = self._commands.bytes_of(order.blob)
        inputs = tuple(read() for read in readers(self._store, order.inputs))
        return Task(order, blob, self._commands.bytes_at(span_of(blob)), inputs, self._origin.path)

    # Taking results

    def _wait(self) -> None:
        """Waits for the next event, and handles all events that have come."""
        now = time.monotonic()
        moment = self._conductor.next_moment(now)
        patience = LOOK_SECONDS if moment is None else min(LOOK_SECONDS, max(0.0, moment - now))
        try:
            event = self._events.get(timeout=patience)
        except queue.Empty:
            if self._store.is_cancelled(self._status.session):
                self._conductor.cancel()
            return
        event()
        while not self._events.empty():
            self._events.get()()

    def _came_back(self, flight: _Flight) -> None:
        if self._flights.get(flight.worker) is not flight:
            return  # the job was already given up
        error = None if flight.future.cancelled() else flight.future.exception()
        if flight.future.cancelled() or isinstance(error, BrokenExecutor):
            self._broke(flight, error)
            return
        del self._flights[flight.worker]
        if error is not None:  # the executor could not transport the task or its outcome
            now = time.time()
            ending = Ending(
                *flight.order[:3],
                now,
                now,
                None,
                error=f"the executor could not run it: {message_of(error)}",
            )
            self._record(flight, Outcome(ending, b""))
        else:
            self._record(flight, flight.future.result())

    def _record(self, flight: _Flight, outcome: Outcome) -> None:
        now = time.monotonic()
        self._suspects.discard(flight.order.job)
        with self._store.explaining("write to"):
            start, end = self._log(outcome.output)
            written = self._writer.append(outcome.ending._replace(log_start=start, log_end=end))
        self._conductor.ended(head(written), segment=self._segment, worker=flight.worker, now=now)
        self._conductor.left(flight.worker)

    def _log(self, output: bytes) -> tuple[int, int]:
        if not output:
            return 0, 0
        with open(self._store.log(self._segment), "ab", opener=open_private) as file:
            start = file.tell()
            file.write(output)
            return start, file.tell()

    def _broke(self, flight: _Flight, error: BaseException | None) -> None:
        """Handles the death of a worker, or of the whole executor."""
        now = time.monotonic()
        if not isinstance(error, WorkerDied):
            self._supply.renew(flight.executor)
        together = [other for other in self._flights.values() if other.executor is flight.executor]
        is_sure = isinstance(error, WorkerDied) or len(together) == 1
        del self._flights[flight.worker]
        if flight.ended_by:
            return  # this was recorded when the job was stopped
        if is_sure:
            self._suspects.discard(flight.order.job)
            why = (
                str(error)
                if isinstance(error, WorkerDied)
                else f"its worker died while it ran ({message_of(error) if error else 'cancelled'})"
            )
            self._died(flight.worker, "crash", why)
        else:
            for other in together:
                self._flights.pop(other.worker, None)
                self._suspects.add(other.order.job)
                self._conductor.lost(other.worker, now)

    # Stopping jobs

    def _end_overdue(self) -> None:
        for worker, why in self._conductor.overdue(time.monotonic()).items():
            self._end(self._flights[worker], why, cause="timeout")

    def _end(self, flight: _Flight, why: str, *, cause: Cause) -> None:
        """Stops a job as far as its executor allows: only this job, or together with all other jobs
        of the pool. A job in a thread cannot be stopped; its result is ignored."""
        if flight.worker not in self._flights or flight.future.done():
            return
        del self._flights[flight.worker]
        flight.ended_by = why
        self._suspects.discard(flight.order.job)
        self._died(flight.worker, cause, why)
        kill = getattr(flight.future, "kill", None)
        if callable(kill):
            kill()
        elif flight.future.cancel():
            pass
        elif not isinstance(flight.executor, ProcessPoolExecutor):
            self._supply.has_given_up = True
        else:
            now = time.monotonic()
            for other in [
                other for other in self._flights.values() if other.executor is flight.executor
            ]:
                del self._flights[other.worker]
                self._conductor.lost(other.worker, now)
            self._supply.renew(flight.executor)

    def _died(self, worker: str, cause: Cause, why: str) -> None:
        self._conductor.died(
            worker,
            cause,
            why,
            segment=None,
            log=(0, 0),
            now=time.monotonic(),
            wall=time.time(),
        )


class _Supply:
    """Has the executor, and makes a new one when it breaks."""

    def __init__(
        self, given: Executor | MakeExecutor | None, options: Options, origin: Origin
    ) -> None:
        self._is_ours = not isinstance(given, Executor)
        self._reaper: processes.Reaper | None = None
        self._guarded: set[int] = set()
        self.has_given_up = False  # a call that cannot be stopped is still running
        self._make: MakeExecutor | None = None
        self._current: Executor | None = None
        if given is None:
            self._make = lambda: ProcessExecutor(
                options.workers, max_calls=options.max_jobs, origin=origin
            )
        elif isinstance(given, Executor):
            self._current = given
            if type(given) is ProcessPoolExecutor:
                self._make = lambda: _pool_like(given)
        else:
            self._make = given

    def get(self) -> Executor:
        if self._current is None:
            assert self._make is not None
            self._current = self._make()
            if not isinstance(self._current, Executor):
                raise RunBroken(
                    "the function given as executor= must return an Executor; it returned "
                    f"{type(self._current).__name__}"
                )
        if self._reaper is None and isinstance(self._current, ProcessPoolExecutor):
            self._reaper = processes.Reaper()
        return self._current

    def capacity(self, workers: int) -> int:
        """The number of jobs to submit at the same time. A job that waits in the queue of a pool
        would use up its timeout there, so there are never more than the pool has workers."""
        return min(workers, getattr(self.get(), "_max_workers", workers))

    def guard(self, executor: Executor) -> None:
        """Registers the processes of a pool with the reaper. A ProcessPoolExecutor leaves its
        processes behind if its parent process is killed."""
        if isinstance(executor, ProcessPoolExecutor):
            assert self._reaper is not None
            for pid in list(getattr(executor, "_processes", None) or ()):
                if pid not in self._guarded:
                    self._guarded.add(pid)
                    self._reaper.watch_process(Identity.of(pid))

    def renew(self, broken: Executor) -> None:
        """Drops a broken executor and kills its remaining processes; `get` makes a new one."""
        if broken is not self._current:
            return
        if self._make is None:
            raise RunBroken(
                f"the executor, a {type(broken).__name__}, is broken; give a function that makes "
                "executors as executor=, so that a broken one can be replaced"
            )
        _end(broken)
        self._current = None
        self._is_ours = True

    def close(self, *, ends_all: bool) -> None:
        if self._reaper is not None:
            self._reaper.close()
        if self._current is not None and self._is_ours:
            if ends_all:
                _end(self._current)
            else:
                self._current.shutdown(wait=not self.has_given_up, cancel_futures=self.has_given_up)


def _end(executor: Executor) -> None:
    if isinstance(executor, KillableExecutor):
        executor.kill_all()
    if isinstance(executor, ProcessPoolExecutor):
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.kill()
    executor.shutdown(wait=True, cancel_futures=True)


def _pool_like(pool: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=pool._max_workers,
        mp_context=pool._mp_context,
        initializer=pool._initializer,
        initargs=pool._initargs,
    )
