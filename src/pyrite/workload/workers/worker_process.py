"""The process of a persistent worker, seen by the process that started it: the master, or on
another machine the host of a launched worker."""

from __future__ import annotations

import os
import socket

from pyrite.workload.storage.store import Store
from pyrite.workload.system import processes
from pyrite.workload.system.copies import OwnFile, above_streams, own_pipe
from pyrite.workload.workers import orders


class WorkerProcess:
    """Its starter also keeps the worker's end of the inbox open, to take orders back."""

    def __init__(
        self,
        store: Store,
        *,
        plan: int,
        segment: int,
        reaper: processes.Reaper,
        lock: int | None = None,
    ) -> None:
        self._reaper = reaper
        # A socket with packets, so that an order is taken as a whole, by the worker or by us.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._their_inbox = socket.socket(fileno=above_streams(theirs.detach()))
        # The worker ends when our end is closed, so a process that is forked from this one must not
        # keep it open.
        self._inbox = OwnFile(above_streams(ours.detach()))
        os.set_blocking(self._inbox.file, False)
        self.reports, their_reports = own_pipe()
        os.set_blocking(self.reports, False)
        config = {
            "store": str(store),
            "plan": plan,
            "segment": segment,
            "inbox": self._their_inbox.fileno(),
            "reports": their_reports,
        }
        files = [self._their_inbox.fileno(), their_reports]
        if lock is not None:
            config["lock"] = lock
            files.append(lock)
        try:
            self._process = processes.start(
                "workers.worker", config, log=store.log(segment), files=files
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
        os.write(self._inbox.file, order)

    def take_back(self) -> bytes | None:
        """Removes and returns an order that the worker has not taken; None if there is none."""
        try:
            data = self._their_inbox.recv(1 << 20, socket.MSG_DONTWAIT)
        except OSError:
            return None
        return data if data and data != orders.DONE else None

    def read(self) -> bytes | None:
        """The next bytes of its reports; empty at their end; None if there are none now."""
        try:
            return os.read(self.reports, 1 << 16)
        except BlockingIOError:
            return None

    def kill(self) -> None:
        """Kills the worker and all processes that it started."""
        processes.kill_session(self._process.pid)

    def end(self) -> str:
        """Kills it if it has not ended, and releases its files. Returns why it ended."""
        self.kill()  # also kills the processes that it started
        code = self._process.wait()
        self._reaper.forget(self._process.pid)
        os.close(self.reports)
        os.close(self.alive)
        self._inbox.close()
        self._their_inbox.close()
        return processes.cause_of(code)
