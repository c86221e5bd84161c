"""The process of a persistent worker, seen by the process that started it: the master, or on
another machine the host of a launched worker."""

from __future__ import annotations

import os

from pyrite.workload.storage.store import Store
from pyrite.workload.system import processes
from pyrite.workload.system.copies import own_pipe
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers import orders
from pyrite.workload.workers.worker_queue import WorkerQueue


class WorkerProcess:
    def __init__(
        self,
        store: Store,
        *,
        plan: int,
        segment: int,
        reaper: processes.Reaper,
        lock: int | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._reaper = reaper
        self._is_killed = False
        self._queue = WorkerQueue()
        self.reports, their_reports = own_pipe()
        os.set_blocking(self.reports, False)
        config = {
            "store": str(store),
            "plan": plan,
            "segment": segment,
            "queue": self._queue.workers_end,
            "reports": their_reports,
        }
        files = [self._queue.workers_end, their_reports]
        if lock is not None:
            config["lock"] = lock
            files.append(lock)
        try:
            self._process = processes.start(
                "workers.worker", config, log=store.log(segment), files=files, origin=origin
            )
        finally:
            os.close(their_reports)
        reaper.watch(self._process.pid)
        self.alive = os.pidfd_open(self._process.pid)
        """A file that can be read when the process has ended."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, order: bytes) -> None:
        self._queue.put(order)

    def take_back(self) -> bytes | None:
        """Removes and returns an order that the worker has not taken; None if there is none."""
        order = self._queue.take_back()
        return None if order == orders.DONE else order

    def read(self) -> bytes | None:
        """The next bytes of its reports; empty at their end; None if there are none now."""
        try:
            return os.read(self.reports, 1 << 16)
        except BlockingIOError:
            return None

    def kill(self) -> None:
        """Kills the worker and all processes that it started."""
        if not self._is_killed:
            self._is_killed = True
            processes.kill_family(self._process.pid)

    def end(self) -> str:
        """Kills it if it has not ended, and releases its files. Returns why it ended."""
        self.kill()  # also kills the processes that it started
        code = self._process.wait()
        self._reaper.forget(self._process.pid)
        os.close(self.reports)
        os.close(self.alive)
        self._queue.close()
        return processes.cause_of(code)
