"""A persistent worker: a process that runs the jobs that the master sends, one after the other,
until all jobs have ended.

It takes an order only when the previous job has ended. So a job whose order is still in the queue
has not started, and the master can take it back. For each job, the worker appends one record to its
segment and sends the head of the record to the master. The output of the jobs goes to its log.
"""

from __future__ import annotations

import atexit
import errno
import os
import pickle
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

from pyrite.telemetry.workloads.parents import VARIABLE as WORKLOAD_RUN
from pyrite.telemetry.workloads.parents import in_job
from pyrite.workload.input.commands.command import Command
from pyrite.workload.storage.cleanup_queue import Ending, SegmentWriter
from pyrite.workload.storage.places import readers
from pyrite.workload.storage.store import Store
from pyrite.workload.system import processes
from pyrite.workload.system.copies import OwnFile
from pyrite.workload.workers import orders
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.running.doing import do
from pyrite.workload.workers.running.leftovers import Leftovers
from pyrite.workload.workers.running.loaded_sources import LoadedSources
from pyrite.workload.workers.running.reuse import can_be_reused
from pyrite.workload.workers.running.surroundings import Surroundings
from pyrite.workload.workers.worker_queue import Consumer

TROUBLE = b"!"
"""The first byte of a report that is not the head of a record: the worker cannot write to the
store. The reason follows."""

READY = b"+"
"""The first report of a worker: it has started and takes jobs."""

OF_THIS_PROCESS = (errno.EFBIG, errno.EBADF)
"""Errors when writing that are not of the disk: the job has set a limit that cannot be undone, or
has closed files of the worker."""

LEAVING_SECONDS = 5.0
"""How long the functions may take that jobs registered with `atexit`."""


def main(config: dict[str, Any]) -> NoReturn:
    for name in ("reports", "lock"):
        if name in config:
            os.set_inheritable(config[name], False)  # by the programs that jobs start
    # The master ignores SIGINT, and the programs that jobs start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.adopt_orphans()
    queue = Consumer(config["queue"])
    processes.end_with(config["queue"])
    worker = Worker(
        Store(config["store"]),
        lock=config.get("lock"),
        plan=config["plan"],
        segment=config["segment"],
        queue=queue,
        reports=config["reports"],
    )
    try:
        worker.work()
    except BaseException:
        traceback.print_exc()  # an error of the worker itself, not of a job
        os._exit(1)
    _leave()


def _leave() -> NoReturn:
    """Ends the process without waiting for threads that jobs left running."""
    in_time = threading.Timer(LEAVING_SECONDS, os._exit, [0])
    in_time.daemon = True
    in_time.start()
    atexit._run_exitfuncs()
    processes.end_children()
    os._exit(0)


class Worker:
    def __init__(
        self,
        store: Store,
        *,
        lock: int | None,
        plan: int,
        segment: int,
        queue: Consumer,
        reports: int,
    ) -> None:
        self._store = store
        # A process that a job leaves running must not keep the store locked.
        self._lock = OwnFile(lock) if lock is not None else None
        self._queue = queue
        self._reports = reports
        self._segment = SegmentWriter(store.segment(segment), plan=plan)
        self._plan = plan
        self._run = os.environ.get(WORKLOAD_RUN, "")
        self._ids: list[str] | None = None
        self._commands = store.open_commands(plan)
        self._sources = LoadedSources(self._commands.sources_of)
        self._reused: dict[tuple[int, ...], Command] = {}
        self._surroundings = Surroundings()
        self._leftovers = Leftovers()
        self._log_end = self._surroundings.log_size()

    def work(self) -> None:
        """Runs jobs until all have ended, or until one has left something that cannot be undone;
        then another worker has to run the next jobs."""
        os.write(self._reports, READY)
        is_clean = True
        while is_clean:
            data = self._queue.consume()
            if not data or data == orders.DONE:
                return
            report, is_clean = self._do(orders.unpack(data, self._fetch))
            os.write(self._reports, report)

    def _do(self, order: Order) -> tuple[bytes, bool]:
        """The report of the job, and whether the next job can run in this process."""
        log_start = self._log_end
        if self._run:
            with in_job(self._run, order.job, order.attempt, self._id_of, is_own_process=True):
                ending = self._done(order)
        else:
            ending = self._done(order)
        is_restored = self._surroundings.restore()
        is_clean = self._leftovers.end() and is_restored
        return self._post(ending, log_start), is_clean

    def _done(self, order: Order) -> Ending:
        return do(
            order,
            self._commands.bytes_of(order.blob),
            self._command_at,
            readers(self._store, order.inputs) if order.inputs else (),
            self._sources,
            self._give_up,
        )

    def _id_of(self, job: int) -> str:
        if self._ids is None:
            self._ids = self._store.read_plan(self._plan).ids
        return self._ids[job]

    def _give_up(self, ending: Ending) -> NoReturn:
        """Ends this process together with the job that it runs, after the job's end is posted."""
        os.write(self._reports, self._post(ending, self._log_end))
        processes.end_family()

    def _post(self, ending: Ending, log_start: int) -> bytes:
        self._log_end = self._surroundings.log_size()
        try:
            return self._segment.append(ending._replace(log_start=log_start, log_end=self._log_end))
        except OSError as error:
            if error.errno in OF_THIS_PROCESS:
                self._end(f"cannot write to {self._segment.path}: {error.strerror}")
            text = f"{error.strerror} ({os.path.basename(self._segment.path)})"
            return TROUBLE + text.encode()

    def _end(self, why: str) -> NoReturn:
        """Ends this process and all that it started. So the job that it runs is blamed."""
        try:
            print(why, file=sys.stderr, flush=True)
        finally:
            processes.end_family()

    def _fetch(self, order: Order) -> bytes:
        """The places of inputs that are too many for an order."""
        path = self._store.inputs(self._plan, order.job, order.attempt)
        places = path.read_bytes()
        path.unlink()
        return places

    def _command_at(self, span: tuple[int, ...]) -> Command:
        self._sources.begin(span)
        command = self._reused.get(span)
        if command is None:
            command = pickle.loads(self._commands.bytes_at(span))
            if can_be_reused(command):
                self._reused[span] = command
        return command
