"""The master's side of a persistent worker: sends orders to it, reads its reports, and kills it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable

from pyrite.workload import orders, processes
from pyrite.workload.scheduler import Cause
from pyrite.workload.store import Store

LENGTH = struct.Struct("<I")


class WorkerLink(ABC):
    """The connection of the master to one worker. There are two kinds of workers."""

    def __init__(self, name: str, segment: int) -> None:
        self.name = name
        self.segment = segment
        self.partial = b""  # the first part of a report that is not complete yet
        self.log_end = 0
        self.read_to = 0  # the position in its segment up to which the master has its records
        self.ended_by: tuple[int, Cause, str] | None = (
            None  # the job because of which the worker was killed, and why
        )
        self.has_begun = False
        self.is_ready = False
        self.is_silent = False  # its reports have ended

    @abstractmethod
    def register(
        self,
        selector: selectors.BaseSelector,
        on_report: Callable[[], None],
        on_death: Callable[[], None],
    ) -> None: ...

    @abstractmethod
    def send(self, order: bytes) -> None: ...

    @abstractmethod
    def take_back(self) -> bytes | None:
        """Removes and returns an order that the worker has not taken; None if there is none."""

    @abstractmethod
    def read(self) -> bytes | None:
        """The next bytes of its reports; empty at their end; None if there are none now."""

    @property
    def pid(self) -> int:
        """The process id of the worker if it is a child process of the master; else 0."""
        return 0

    @abstractmethod
    def kill(self) -> None:
        """Kills the worker and all processes that it started."""

    @abstractmethod
    def bury(self, selector: selectors.BaseSelector) -> str:
        """Releases the resources of a dead worker. Returns the cause of its death."""


class LocalWorker(WorkerLink):
    """A process that the master started. The master also keeps the worker's end of the inbox open,
    to take orders back."""

    def __init__(
        self,
        name: str,
        segment: int,
        store: Store,
        *,
        plan: int,
        lock: int,
        reaper: processes.Reaper,
    ) -> None:
        super().__init__(name, segment)
        self._reaper = reaper
        # A socket with packets, so that either the worker or the master takes an order as a whole.
        self._inbox, self._their_inbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._inbox.setblocking(False)
        self._reports, their_reports = os.pipe()
        os.set_blocking(self._reports, False)
        try:
            self._process = processes.start(
                "worker",
                {
                    "store": str(store),
                    "plan": plan,
                    "segment": segment,
                    "inbox": self._their_inbox.fileno(),
                    "reports": their_reports,
                    "lock": lock,
                },
                log=store.log(segment),
                files=(self._their_inbox.fileno(), their_reports, lock),
            )
        finally:
            os.close(their_reports)
        reaper.watch(self._process.pid)
        self._alive = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def register(
        self,
        selector: selectors.BaseSelector,
        on_report: Callable[[], None],
        on_death: Callable[[], None],
    ) -> None:
        selector.register(self._reports, selectors.EVENT_READ, on_report)
        selector.register(self._alive, selectors.EVENT_READ, on_death)
        self._unregister = selector.unregister

    def send(self, order: bytes) -> None:
        self._inbox.send(order)

    def take_back(self) -> bytes | None:
        try:
            data = self._their_inbox.recv(1 << 20, socket.MSG_DONTWAIT)
        except OSError:
            return None
        return data if data and data != orders.DONE else None

    def read(self) -> bytes | None:
        if self.is_silent:
            return None
        try:
            data = os.read(self._reports, 1 << 16)
        except BlockingIOError:
            return None
        if not data:
            self._unregister(self._reports)
            self.is_silent = True
            self.kill()  # it is ending, or a job closed the pipe, so that it cannot report
        return data

    def kill(self) -> None:
        processes.kill_session(self._process.pid)

    def bury(self, selector: selectors.BaseSelector) -> str:
        self.kill()  # also kills the processes that it started
        code = self._process.wait()
        self._reaper.forget(self._process.pid)
        if not self.is_silent:
            selector.unregister(self._reports)
        selector.unregister(self._alive)
        os.close(self._reports)
        os.close(self._alive)
        self._inbox.close()
        self._their_inbox.close()
        return cause_of(code)


class LaunchedWorker(WorkerLink):
    """A worker that a launcher started, on any machine, and that connected to the master. The
    worker ends when the connection is closed, and the connection is closed when the worker ends."""

    def __init__(self, name: str, segment: int, connection: socket.socket, *, plan: int) -> None:
        super().__init__(name, segment)
        self._connection = connection
        connection.setblocking(True)
        self.send(json.dumps({"segment": segment, "plan": plan}).encode())
        connection.setblocking(False)

    def register(
        self,
        selector: selectors.BaseSelector,
        on_report: Callable[[], None],
        on_death: Callable[[], None],
    ) -> None:
        def on_readable() -> None:
            on_report()
            if self.is_silent:
                on_death()

        selector.register(self._connection, selectors.EVENT_READ, on_readable)

    def send(self, order: bytes) -> None:
        try:
            self._connection.sendall(LENGTH.pack(len(order)) + order)
        except OSError:
            self.kill()  # the end of the connection is then handled like the death of any worker

    def take_back(self) -> bytes | None:
        return None  # an order that was sent cannot be taken back

    def read(self) -> bytes | None:
        if self.is_silent:
            return None
        try:
            data = self._connection.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self.is_silent = True
        return data

    def kill(self) -> None:
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def bury(self, selector: selectors.BaseSelector) -> str:
        selector.unregister(self._connection)
        self._connection.close()
        return "its connection was lost"


def receive(connection: socket.socket) -> bytes:
    """Reads one order from a connection; empty if the connection was closed."""
    head = exactly(connection, LENGTH.size)
    return exactly(connection, LENGTH.unpack(head)[0]) if head else b""


def cause_of(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def exactly(connection: socket.socket, size: int) -> bytes:
    """Reads exactly `size` bytes from a connection; empty if it is closed before that."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data
