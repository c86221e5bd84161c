"""The master of transient workers: a thread in the user's process that submits each job to an
executor.

When an executor breaks, it does not tell which job killed its worker, so all jobs that it was
running are suspects. Suspects then run one at a time, so that only the job that kills its worker is
blamed.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from pyrite.errors import RunBroken
from pyrite.functions import message_of
from pyrite.system.alive import LONGEST_SECONDS
from pyrite.workload.input.options import Options
from pyrite.workload.masters.conductor import Conductor
from pyrite.workload.masters.hooks import Hooks, start_hooks
from pyrite.workload.masters.slots import Slot, Slots
from pyrite.workload.masters.supply import ExecutorSupply, MakeExecutor
from pyrite.workload.masters.watched import Watched, watched
from pyrite.workload.scheduling.scheduler import Cause
from pyrite.workload.storage.cleanup_queue import Ending
from pyrite.workload.storage.encoding import Encoded
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.places import readers
from pyrite.workload.storage.store import Status, Store
from pyrite.workload.system.copies import OwnFile
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers.launched import launching
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.running.doing import span_of
from pyrite.workload.workers.transient.executors import (
    KillableExecutor,
    ProcessExecutor,
    WorkerDied,
)
from pyrite.workload.workers.transient.tasks import Outcome, Task, run_task

LOOK_SECONDS = 0.5  # how often it looks whether another process wants to cancel the run
BEGINNING_SECONDS = 0.05  # how often it looks whether a job with a timeout has begun
LEAVING_SECONDS = 5.0
REFUSALS_MAX = 3  # consecutive new executors that may be broken before they take a job


@dataclass(slots=True)
class _Flight:
    """A job that was submitted to the executor and has not come back."""

    order: Order
    worker: str
    slot: Slot
    future: Future[Any]
    executor: Executor
    submitted: float
    timeout: float | None
    has_begun: bool = False


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
        self._supply = ExecutorSupply(executor, options, origin)
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._flights: dict[str, _Flight] = {}
        self._suspects: set[int] = set()
        self._hooks: Hooks | None = None
        self._watched: Watched | None = None
        self._names = 0
        self._refusals = 0
        self._process = os.getpid()
        # Not the state of the thread: when Ctrl-C interrupts Thread.join, Python takes the thread
        # for ended.
        self._ended = threading.Event()
        _masters.add(self)
        threading.Thread(target=self._run_and_tell, name="workload master", daemon=True).start()

    @property
    def is_here(self) -> bool:
        """Whether this is the process of the master, and not one that was forked from it."""
        return os.getpid() == self._process

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def join(self, seconds: float | None) -> bool:
        """Waits up to `seconds` for the run to end. Returns whether it has ended."""
        give_up = inf if seconds is None else time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > LONGEST_SECONDS:
            if self._ended.wait(LONGEST_SECONDS):
                return True
        return self._ended.wait(max(0.0, left))

    def _run_and_tell(self) -> None:
        """Runs until every job has ended, and writes the final status."""
        status = self._status
        try:
            # In this thread, because a SQLite connection belongs to the thread that opened it.
            self._journal = Journal(self._store)
            try:
                status = replace(status, phase=self._run())
            finally:
                self._supply.close(ends_all=bool(self._flights))
                self._journal.close()
        except BaseException as error:
            status = status.broken_by(error)
        ended = time.time()
        if self._watched is not None:
            self._watched.end(status, ended)
        try:
            self._store.write_status(replace(status, ended=ended))
        finally:
            if self._hooks is not None:
                self._hooks.close()
            self._lock.close()
            _masters.discard(self)
            self._ended.set()
            if self._watched is not None:
                self._watched.close()

    def cancel(self) -> None:
        """Cancels the run. May be called from any thread."""
        self._events.put(lambda: self._conductor.cancel())

    def _run(self) -> str:
        with ExitStack() as opened:
            self._slots = opened.enter_context(closing(Slots(self._store, self._journal)))
            plan = self._store.read_plan(self._journal.plan)
            commands = self._store.open_commands(self._journal.plan)
            self._commands = opened.enter_context(closing(commands))
            self._hooks = start_hooks(
                self._store, self._journal.plan, plan, self._status, origin=self._origin
            )
            self._watched = watched(self._store, self._status)
            self._conductor = Conductor(
                self._store,
                plan,
                self._journal,
                self._options,
                hooks=self._hooks,
                watched=self._watched,
                depth=1,
                folder=self._origin.folder or "",
            )
            with self._conductor.recording():
                self._run_jobs()
        return self._conductor.phase

    def _run_jobs(self) -> None:
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

    # Submitting jobs

    def _send_out(self) -> None:
        """Submits the jobs that can start now, each as a worker of its own."""
        while len(self._flights) < (1 if self._suspects else self._supply.capacity):
            worker = f"t{self._names + 1}"
            slot = self._slots.take()
            self._conductor.joined(
                worker, segment=slot.segment, log_end=slot.log_start, is_ready=False
            )
            orders = self._conductor.assign(time.monotonic(), time.time())
            if not orders:
                self._conductor.left(worker)
                self._slots.release(slot)
                return
            self._names += 1
            self._submit(*orders[0], slot)

    def _submit(self, worker: str, order: Order, slot: Slot) -> None:
        executor = self._supply.get()
        try:
            future = executor.submit(run_task, self._task(order, slot))
        except Exception as error:
            self._slots.release(slot)
            self._refused(worker, executor, error)
            return
        self._refusals = 0
        self._supply.guard(executor)
        timeout = self._conductor.plan.timeouts[order.job]
        flight = self._flights[worker] = _Flight(
            order, worker, slot, future, executor, time.monotonic(), timeout
        )
        future.add_done_callback(lambda _: self._events.put(lambda: self._came_back(flight)))

    def _refused(self, worker: str, executor: Executor, error: Exception) -> None:
        """The executor did not take a job."""
        self._refusals += 1
        if isinstance(error, BrokenExecutor) and self._refusals <= REFUSALS_MAX:
            self._supply.renew(executor)
        elif isinstance(error, RuntimeError) and "interpreter shutdown" in str(error):
            # The interpreter is shutting down, and its pools accept no more calls.
            self._conductor.cancel()
        else:
            raise RunBroken(
                f"the executor ({type(executor).__name__}) accepts no jobs: {message_of(error)}; "
                "do not shut it down before the run has ended"
            ) from error
        self._conductor.lost(worker, time.monotonic())

    def _task(self, order: Order, slot: Slot) -> Task:
        blob = self._commands.bytes_of(order.blob)
        span = span_of(blob)
        command, sources = self._commands.bytes_at(span), self._commands.sources_of(span)
        inputs = tuple(_input(read) for read in readers(self._store, order.inputs))
        path = self._origin.path
        luggage = self._commands.luggage_of(order.blob, is_here=_is_here(self._supply.get()))
        log, here = slot.log_end, os.getpid()
        run = "" if self._watched is None else self._watched.ids.packed()
        id = self._conductor.plan.ids[order.job]
        return Task(order, blob, command, inputs, path, log, here, sources, luggage, run, id)

    # Taking results

    def _wait(self) -> None:
        """Waits for the next event, and handles all events that have come."""
        longest = BEGINNING_SECONDS if self._note_beginnings() else LOOK_SECONDS
        now = time.monotonic()
        moment = self._conductor.next_moment(now)
        patience = longest if moment is None else min(longest, max(0.0, moment - now))
        try:
            event = self._events.get(timeout=patience)
        except queue.Empty:
            if self._store.is_cancelled(self._status.session):
                self._conductor.cancel()
            return
        event()
        while not self._events.empty():
            self._events.get()()

    def _note_beginnings(self) -> bool:
        """The timeout of a job counts from when it begins. Returns whether jobs with a timeout have
        not begun."""
        waits = False
        for flight in self._flights.values():
            if flight.timeout is not None and not flight.has_begun:
                since = self._beginning(flight, flight.timeout)
                if since is None:
                    waits = True
                else:
                    flight.has_begun = True
                    wall = time.time() - (time.monotonic() - since)
                    self._conductor.is_ready(flight.worker, since, began=wall)
        return waits

    def _beginning(self, flight: _Flight, timeout: float) -> float | None:
        """When the job began; None if it waits in the queue of its executor."""
        now = time.monotonic()
        if flight.slot.has_begun:
            return now
        if _is_here(flight.executor):
            return None
        if flight.future.running():
            return now
        # Some executors do not tell which of their futures are running.
        tells = any(other.future.running() for other in self._flights.values())
        return flight.submitted if now - flight.submitted >= timeout and not tells else None

    def _came_back(self, flight: _Flight) -> None:
        if self._flights.get(flight.worker) is not flight:
            return  # the job was already given up
        if flight.future.cancelled():
            self._died(flight, "crash", "its call was cancelled, and not by the run")
            return
        error = flight.future.exception()
        if isinstance(error, WorkerDied):
            self._died(flight, "crash", str(error))
        elif isinstance(error, BrokenExecutor):
            self._broke(flight, error)
        elif error is not None:  # the executor could not transport the task or its outcome
            self._failed(flight, f"the executor could not run it: {message_of(error)}")
        elif not isinstance(outcome := flight.future.result(), Outcome):
            self._failed(
                flight,
                f"the executor ({type(flight.executor).__name__}) returned something else than the "
                f"call: {type(outcome).__name__}",
            )
        else:
            self._record(flight, outcome)

    def _failed(self, flight: _Flight, why: str) -> None:
        now = time.time()
        self._record(flight, Outcome(Ending(*flight.order[:3], now, now, None, error=why), b""))

    def _record(self, flight: _Flight, outcome: Outcome) -> None:
        del self._flights[flight.worker]
        self._suspects.discard(flight.order.job)
        record = flight.slot.record(outcome.ending, outcome.output)
        self._conductor.ended(
            record, segment=flight.slot.segment, worker=flight.worker, now=time.monotonic()
        )
        self._conductor.left(flight.worker)
        self._slots.release(flight.slot)

    def _broke(self, flight: _Flight, error: BrokenExecutor) -> None:
        """Handles the death of a whole executor."""
        self._supply.renew(flight.executor)
        together = [other for other in self._flights.values() if other.executor is flight.executor]
        if len(together) == 1:
            self._died(flight, "crash", f"its worker died while it ran ({message_of(error)})")
            return
        for other in together:
            self._suspects.add(other.order.job)
            self._lost(other)

    # Stopping jobs

    def _end_overdue(self) -> None:
        for worker, why in self._conductor.overdue(time.monotonic()).items():
            flight = self._flights.get(worker)  # it may have been stopped with another of its pool
            if flight is not None:
                self._end(flight, why, cause="timeout")
        limit = launching.START_SECONDS
        late = [
            flight
            for flight in self._flights.values()
            if time.monotonic() - flight.submitted > limit
            and isinstance(flight.executor, ProcessExecutor)
            and not flight.slot.has_begun
        ]
        for flight in late:
            why = f"its worker process did not start within {limit:g} s"
            self._end(flight, why, cause="crash")

    def _end(self, flight: _Flight, why: str, *, cause: Cause) -> None:
        """Stops a job as far as its executor allows: only this job, or together with all other jobs
        of the pool. A job in a thread cannot be stopped; its result is ignored."""
        if flight.worker not in self._flights or flight.future.done():
            return
        together: list[_Flight] = []
        kill = getattr(flight.future, "kill", None)
        if callable(kill):
            kill()
        elif flight.future.cancel():
            pass
        elif not isinstance(flight.executor, ProcessPoolExecutor):
            self._supply.give_up(flight.executor, flight.future)
        else:
            together = [
                other
                for other in self._flights.values()
                if other.executor is flight.executor and not other.future.done()
            ]
            self._supply.renew(flight.executor)
        self._died(flight, cause, why)
        for other in together:
            if other is not flight:
                self._lost(other)

    def _died(self, flight: _Flight, cause: Cause, why: str) -> None:
        del self._flights[flight.worker]
        self._suspects.discard(flight.order.job)
        self._conductor.died(
            flight.worker,
            cause,
            why,
            segment=flight.slot.segment,
            log=(flight.slot.log_start, flight.slot.log_size),
            now=time.monotonic(),
            wall=time.time(),
        )
        self._slots.retire(flight.slot)

    def _lost(self, flight: _Flight) -> None:
        del self._flights[flight.worker]
        self._conductor.lost(flight.worker, time.monotonic())
        self._slots.retire(flight.slot)


def _input(read: Callable[[], Encoded]) -> Encoded | OSError:
    try:
        return read()
    except OSError as error:
        return error


def _is_here(executor: Executor) -> bool:
    """Whether its jobs run on this machine, so that they can reach the store."""
    if isinstance(executor, KillableExecutor):
        return executor.is_here
    return isinstance(executor, (ProcessPoolExecutor, ThreadPoolExecutor))


_masters: weakref.WeakSet[TransientMaster] = weakref.WeakSet()


def _end_with_the_interpreter() -> None:
    masters = [master for master in _masters if master.is_here]
    for master in masters:
        master.cancel()
    give_up = time.monotonic() + LEAVING_SECONDS
    for master in masters:
        master.join(max(0.0, give_up - time.monotonic()))


# Functions that are registered with `atexit` are called too late: the interpreter first waits for
# the calls of all pools, except if these were cancelled by a function that is registered like this.
threading._register_atexit(_end_with_the_interpreter)  # type: ignore[attr-defined]
