"""The master of persistent workers: a background process that starts them, sends them jobs, and
replaces workers that die.

One loop waits for all events: record heads from the workers, ends of workers, deadlines, and the
signal to cancel. The conductor makes the decisions and keeps the journal.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from pyrite.errors import RunBroken
from pyrite.system.alive import LONGEST_SECONDS
from pyrite.system.private import write_private
from pyrite.telemetry.workloads.parents import VARIABLE as WORKLOAD_RUN
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.masters.conductor import Conductor
from pyrite.workload.masters.hooks import Hooks, start_hooks
from pyrite.workload.masters.watched import Watched, watched
from pyrite.workload.scheduling.scheduler import Cause
from pyrite.workload.storage.cleanup_queue import HEAD_BYTES, Record, end_of, head, read_records
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store
from pyrite.workload.system import processes
from pyrite.workload.workers import orders
from pyrite.workload.workers.launched import launching
from pyrite.workload.workers.links import Listeners, LocalWorker, WorkerLink
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.worker import READY, TROUBLE
from pyrite.workload.workers.worker_process import WorkerProcess

if TYPE_CHECKING:
    from pyrite.wire.wire import Connection, Wire
    from pyrite.workload.workers.launched.arrivals import Arrivals, LaunchedWorker

STILLBIRTHS_MAX = 3  # consecutive workers that may die before they take a job
LEAVING_SECONDS = 10.0


def main(config: dict[str, Any]) -> NoReturn:
    store = Store(config["store"])
    word = os.read(0, launching.SECRET_LENGTH)
    if not word:
        os._exit(1)  # the process that started this one ended before it gave the word to begin
    processes.adopt_orphans()
    status = store.status()
    assert status is not None
    code = 0
    hooks: Hooks | None = None
    seen: Watched | None = None
    try:
        journal = Journal(store)
        try:
            plan = store.read_plan(journal.plan)
            hooks = start_hooks(store, journal.plan, plan, status)
            seen = watched(store, status)
            if seen is not None:
                os.environ[WORKLOAD_RUN] = seen.ids.packed()  # for the workers
            master = Master(
                store,
                plan,
                journal,
                Options(**status.options),
                hooks=hooks,
                seen=seen,
                lock=config["lock"],
                start_seconds=config["start_seconds"],
            )
            if "listener" in config:
                master.admit_workers(
                    socket.socket(fileno=config["listener"]), word.decode(), config["limits"]
                )
            gc.collect()
            gc.freeze()  # the plan is large and lives until the end
            phase = master.run()
        finally:
            journal.close()
        status = replace(status, phase=phase)
    except BaseException as error:
        status = status.broken_by(error)
        code = 1
        if not isinstance(error, RunBroken):
            traceback.print_exc()
    ended = time.time()
    if seen is not None:
        seen.end(status, ended)
    store.write_status(replace(status, ended=ended))
    if seen is not None:
        seen.close()
    if hooks is not None:
        hooks.close()
    os._exit(code)


class Master:
    """It starts the workers itself, unless `admit_workers` was called."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        journal: Journal,
        options: Options,
        *,
        hooks: Hooks | None = None,
        seen: Watched | None = None,
        lock: int,
        start_seconds: float,
    ) -> None:
        self._store = store
        self._plan = plan
        self._journal = journal
        self._options = options
        self._lock = lock
        self._start_seconds = start_seconds
        self._hooks = hooks
        self._conductor = Conductor(store, plan, journal, options, hooks=hooks, watched=seen)
        self._workers: dict[str, WorkerLink] = {}
        self._names = 0
        self._stillbirths = 0
        self._last_end = ""  # of a worker: why it ended, and the last line of its log
        self._starts_max = max(2, os.cpu_count() or 1)
        self._selector = selectors.EpollSelector()
        self._reaper = processes.Reaper()
        self._woken, self._wake = os.pipe()
        self._arrivals: Arrivals | None = None
        self._launcher_ended = False

    def admit_workers(
        self, listener: socket.socket, secret: str, limits: Mapping[str, float]
    ) -> None:
        """A launcher starts the workers, and their hosts connect to the listener."""
        # Imported here, because a master that starts its workers itself needs no wire.
        from pyrite.wire.sockets import Limits
        from pyrite.workload.workers.launched.arrivals import Arrivals, LaunchedWorker

        def welcome(wire: Wire, connection: Connection) -> LaunchedWorker:
            worker = LaunchedWorker(*self._new_name(), wire, connection, plan=self._journal.plan)
            self._welcome(worker)
            return worker

        self._arrivals = Arrivals(listener, secret, Limits(**limits), welcome)
        self._selector.register(self._arrivals, selectors.EVENT_READ, lambda: None)
        # The process that called the launcher holds the other end of this pipe until the launcher
        # returns.
        self._selector.register(sys.stdin, selectors.EVENT_READ, self._launcher_is_gone)

    def run(self) -> str:
        """Runs until every job has ended. Returns the final phase of the run."""
        self._listen_for_signals()
        try:
            with self._conductor.recording():
                self._run_jobs()
            self._dismiss()
        finally:
            for worker in self._workers.values():
                worker.kill()
                worker.bury(self._selector)
            self._workers.clear()
            if self._arrivals is not None:
                self._arrivals.close()
            processes.end_children(but=self._own_processes)
            self._reaper.close()
        return self._conductor.phase

    def _run_jobs(self) -> None:
        while not self._conductor.has_ended():
            self._assign()
            if self._conductor.has_ended():
                break
            self._hire()
            self._recall()
            self._end_overdue()
            self._end_late()
            self._conductor.flush_if_due(time.monotonic())
            self._wait(self._patience())
            if self._conductor.stops_running_jobs:
                self._stop_running_jobs()

    # Workers

    def _hire(self) -> None:
        """Starts workers up to their number, as long as there is work for another one."""
        if self._arrivals is not None:
            self._check_launcher()
            return
        if len(self._workers) >= self._options.workers:
            return
        # As many workers start at the same time as there are cores. More would start slower, and
        # the first ones may be enough for all jobs.
        starting = sum(not worker.is_ready for worker in self._workers.values())
        most = min(self._options.workers, len(self._workers) - starting + self._starts_max)
        while len(self._workers) < most and self._conductor.has_work_for_a_worker:
            if self._stillbirths >= STILLBIRTHS_MAX:
                raise RunBroken(
                    f"{self._stillbirths} workers in a row ended before they took a job; the last "
                    f"one: {self._last_end}"
                )
            self._start_worker()
            self._assign()

    def _start_worker(self) -> None:
        name, segment = self._new_name()
        with self._store.explaining("write to"):
            process = WorkerProcess(
                self._store,
                plan=self._journal.plan,
                segment=segment,
                reaper=self._reaper,
                lock=self._lock,
            )
        self._welcome(LocalWorker(name, segment, process))

    def _new_name(self) -> tuple[str, int]:
        self._names += 1
        name = f"w{self._names}"
        return name, self._journal.new_segment(name)

    def _welcome(self, worker: WorkerLink) -> None:
        worker.register(
            self._selector,
            Listeners(
                lambda: self._read_reports(worker), self._returned, lambda: self._bury(worker)
            ),
        )
        self._workers[worker.name] = worker
        self._conductor.joined(worker.name, segment=worker.segment, is_ready=False)

    def _bury(self, worker: WorkerLink) -> None:
        """Handles the end of a worker: records the jobs that it finished, takes back the jobs that
        it had not started, and blames the job that it was running."""
        if worker.name not in self._workers:
            return
        self._read_reports(worker)
        del self._workers[worker.name]
        now = time.monotonic()
        if self._store.segment(worker.segment).exists():
            for record in read_records(self._store.segment(worker.segment), worker.read_to):
                self._take_in(worker, record, now)
        worker.recall()
        what = worker.bury(self._selector)
        if not worker.is_ready:  # it cannot have taken those that did not come back, either
            for job in self._conductor.jobs_of(worker.name):
                self._conductor.returned(job, now)
        has_begun = worker.has_begun or bool(self._conductor.jobs_of(worker.name))
        if has_begun or worker.ended_by is not None:
            self._stillbirths = 0
        else:
            self._stillbirths += 1
            self._last_end = worker.ended_for or what
            self._last_end += (
                f"; the last line of its log: {self._store.last_words(worker.segment)}"
            )
        self._blame(worker, what, now)
        processes.end_children(but=self._own_processes)

    def _own_processes(self) -> set[int]:
        """The children of the master, without those that it adopted from workers that have died. A
        worker that lives adopts what its job leaves."""
        own = {self._reaper.process.pid, *(worker.pid for worker in self._workers.values())}
        return own if self._hooks is None else own | {self._hooks.pid}

    def _check_launcher(self) -> None:
        if self._launcher_ended and not self._workers:
            path = launching.error_of(self._store)
            why = f" ({path.read_text()})" if path.exists() else ""
            raise RunBroken(
                f"the launcher returned, and its workers ended, before all jobs had ended{why}; "
                "what was recorded is kept, and the run can be resumed"
            )

    def _blame(self, worker: WorkerLink, what: str, now: float) -> None:
        running = self._conductor.jobs_of(worker.name)
        job, cause, why = worker.ended_by or (
            -1,
            "crash",
            f"its worker {worker.name} died while it ran ({what})",
        )
        if worker.ended_by is not None and running and running[0] != job:
            # The job that the worker was killed for had finished just before.
            self._conductor.lost(worker.name, now)
            return
        log = (worker.log_end, self._store.log_size(worker.segment))
        self._conductor.died(
            worker.name, cause, why, segment=worker.segment, log=log, now=now, wall=time.time()
        )

    def _end_worker(self, worker: WorkerLink, cause: Cause, why: str) -> None:
        """Kills a worker because of the job that it runs. If the job finishes just before, its
        result is kept."""
        if worker.ended_by is None:
            worker.ended_by = (next(iter(self._conductor.jobs_of(worker.name)), -1), cause, why)
            worker.kill()

    def _end_late(self) -> None:
        """Kills the workers that take too long to start."""
        if self._all_are_ready():
            return
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if worker.is_due(self._start_seconds) <= now:
                worker.ended_for = f"it was not ready within {self._start_seconds:g} s"
                worker.kill()

    def _all_are_ready(self) -> bool:
        return all(worker.is_ready for worker in self._workers.values())

    def _dismiss(self) -> None:
        """Tells the workers that all jobs have ended, and waits until they have ended too."""
        if self._arrivals is not None:
            self._arrivals.shut()
        for worker in self._workers.values():
            worker.send(orders.DONE)
        give_up = time.monotonic() + LEAVING_SECONDS
        while self._workers and (left := give_up - time.monotonic()) > 0:
            self._wait(left)

    # Jobs

    def _assign(self) -> None:
        for name, order in self._conductor.assign(time.monotonic(), time.time()):
            self._workers[name].send(orders.pack(order, self._put_aside))

    def _put_aside(self, order: Order, places: bytes) -> None:
        with self._store.explaining("write to"):
            path = self._store.inputs(self._journal.plan, order.job, order.attempt)
            write_private(path, places)

    def _read_reports(self, worker: WorkerLink) -> None:
        now = time.monotonic()
        while data := worker.read():
            data = worker.partial + data
            while data:
                if data.startswith(READY):
                    worker.is_ready = True
                    self._conductor.is_ready(worker.name, now)
                    data = data[1:]
                elif data.startswith(TROUBLE):
                    raise RunBroken(
                        f"a worker cannot write to the store '{self._store}': "
                        f"{data[1:].decode(errors='replace')}; "
                        "what was recorded is kept, and the run can be resumed"
                    )
                elif len(data) >= HEAD_BYTES:
                    self._take_in(worker, head(data), now)
                    data = data[HEAD_BYTES:]
                else:
                    break
            worker.partial = data

    def _take_in(self, worker: WorkerLink, record: Record, now: float) -> None:
        worker.has_begun = True
        worker.read_to = end_of(record)
        worker.log_end = record.log_end
        self._conductor.ended(record, segment=worker.segment, worker=worker.name, now=now)

    def _recall(self) -> None:
        names = self._conductor.recalls(time.monotonic())
        for name in names:
            self._workers[name].recall()
        if names:
            # A worker that had not taken any order gives all of them back, and then reports nothing
            # that would wake the master.
            self._assign()

    def _returned(self, order: bytes) -> None:
        """A worker has given back an order that it had not taken."""
        self._conductor.returned(orders.unpack(order).job, time.monotonic())

    def _end_overdue(self) -> None:
        now = time.monotonic()
        overdue = self._conductor.overdue(now)
        if not overdue:
            return
        if self._arrivals is not None:
            self._arrivals.turn()  # what they reported in time may not have been read yet
        for name in overdue:
            self._read_reports(self._workers[name])
        for name, why in self._conductor.overdue(now).items():
            self._end_worker(self._workers[name], "timeout", why)

    def _stop_running_jobs(self) -> None:
        for name in self._conductor.busy_workers():
            self._end_worker(
                self._workers[name], "cancel", "it was stopped while it ran, because the run ended"
            )

    # Time and signals

    def _wait(self, seconds: float | None) -> None:
        """Waits for events, and handles them."""
        if self._arrivals is not None:
            seconds = self._arrivals.patience(seconds)
        for key, _ in self._selector.select(seconds):
            key.data()
        if self._arrivals is not None:
            self._arrivals.turn()

    def _patience(self) -> float | None:
        """The time until something has to be done even without an event; None if never."""
        now = time.monotonic()
        moment = self._conductor.next_moment(now)
        if not self._all_are_ready():
            starts = [worker.is_due(self._start_seconds) for worker in self._workers.values()]
            moment = min(inf if moment is None else moment, *starts)
        if moment is None or moment == inf:
            return None
        # A job that exceeded its timeout is overdue until its worker, which was killed, is buried.
        is_killed = any(worker.ended_by is not None for worker in self._workers.values())
        return max(0.01 if is_killed else 0.0, min(moment - now, LONGEST_SECONDS))

    def _listen_for_signals(self) -> None:
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._selector.register(self._woken, selectors.EVENT_READ, self._signalled)
        processes.take_signals()

    def _signalled(self) -> None:
        if signal.SIGTERM in os.read(self._woken, 100):
            self._conductor.cancel()

    def _launcher_is_gone(self) -> None:
        self._selector.unregister(sys.stdin)
        self._launcher_ended = True
