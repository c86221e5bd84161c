"""The master's side of a persistent worker: sends orders to it, reads its reports, and kills it."""

from __future__ import annotations

import selectors
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from pyrite.workload.scheduling.scheduler import Cause
from pyrite.workload.workers.worker_process import WorkerProcess


@dataclass(frozen=True, slots=True)
class Listeners:
    """What the master does about a worker."""

    on_report: Callable[[], None]
    on_return: Callable[[bytes], None]
    """The worker gives back an order that it had not taken."""
    on_death: Callable[[], None]


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
        self.ended_for = ""  # why it was killed, if not because of a job
        self.has_begun = False
        self.is_ready = False
        self._born = time.monotonic()

    def is_due(self, start_seconds: float) -> float:
        """When it is late if it is not ready until then; never if it is, or was killed."""
        is_awaited = not self.is_ready and not self.ended_for and self.ended_by is None
        return self._born + start_seconds if is_awaited else inf

    @abstractmethod
    def register(self, selector: selectors.BaseSelector, listeners: Listeners) -> None: ...

    @abstractmethod
    def send(self, order: bytes) -> None: ...

    @abstractmethod
    def recall(self) -> None:
        """Asks for the orders that the worker has not taken; `on_return` gets them, at once or
        later."""

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
    """A process that the master started."""

    def __init__(self, name: str, segment: int, process: WorkerProcess) -> None:
        super().__init__(name, segment)
        self._process = process
        self._is_silent = False  # its reports have ended

    @property
    def pid(self) -> int:
        return self._process.pid

    def register(self, selector: selectors.BaseSelector, listeners: Listeners) -> None:
        selector.register(self._process.reports, selectors.EVENT_READ, listeners.on_report)
        selector.register(self._process.alive, selectors.EVENT_READ, listeners.on_death)
        self._unregister = selector.unregister
        self._on_return = listeners.on_return

    def send(self, order: bytes) -> None:
        self._process.send(order)

    def recall(self) -> None:
        while (order := self._process.take_back()) is not None:
            self._on_return(order)

    def read(self) -> bytes | None:
        if self._is_silent:
            return None
        data = self._process.read()
        if data == b"":
            self._unregister(self._process.reports)
            self._is_silent = True
            self.kill()  # it is ending, or a job closed the pipe, so that it cannot report
        return data

    def kill(self) -> None:
        self._process.kill()

    def bury(self, selector: selectors.BaseSelector) -> str:
        if not self._is_silent:
            selector.unregister(self._process.reports)
        selector.unregister(self._process.alive)
        return self._process.end()
