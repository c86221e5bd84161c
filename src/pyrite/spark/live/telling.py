"""In a Python worker: tells the driver what the task has done so far. A thread does this, so that
it goes on while a step of the user's takes long. It never waits and never raises."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pyrite.engine.processes import this_process
from pyrite.spark.limits import free_address_space

if TYPE_CHECKING:
    from pyrite.wire.telling import Teller

logger = logging.getLogger("pyrite.spark")

FIRST_SECONDS: Final = 0.3
"""A task that takes less only tells how it ended."""
IDLE_SECONDS: Final = 3.0
"""A connection that nobody has used for so long is closed: its job has ended."""
LEAST_ROOM: Final = 2 << 30
"""Threads and sockets take some hundred MB of address space, but little memory. Where Spark limits
the address space, a task only tells if so much is left for the user's functions."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where the driver listens, the keys for that, and how often to tell."""

    address: str
    public: bytes
    secret: bytes
    seconds: float


def begin_telling(
    where: Where,
    *,
    section: int,
    member: int,
    attempt: str,
    metrics: Callable[[], Mapping[str, Any]],
) -> Telling | None:
    """Begins to tell of a task. Returns None if this process had better not do so."""
    room = free_address_space()
    if room is not None and room < LEAST_ROOM:
        return None
    telling = Telling(where, section=section, member=member, attempt=attempt, metrics=metrics)
    try:
        _this_process().begin(telling)
    except RuntimeError:  # no more threads can be started
        logger.debug("a task cannot tell its metrics", exc_info=True)
        return None
    return telling


class Telling:
    """Tells of one task until `end`."""

    def __init__(
        self,
        where: Where,
        *,
        section: int,
        member: int,
        attempt: str,
        metrics: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.where = where
        self.due = monotonic() + FIRST_SECONDS
        self._task = {"section": section, "member": member, "attempt": attempt}
        self._metrics = metrics

    def end(self) -> None:
        """The task has ended, well or not. What it has done is told once more."""
        try:
            _this_process().end(self, self.message(is_over=True))
        except RuntimeError:  # a forked child, in which no more threads can be started
            logger.debug("a task cannot tell its metrics", exc_info=True)

    def message(self, *, is_over: bool = False) -> bytes | None:
        """What the driver is told now; None if that cannot be said."""
        try:
            metrics = self._metrics()
            process = this_process(str(self._task["member"]))
            told = {**self._task, "is_over": is_over, "process": process, "metrics": metrics}
            return json.dumps(told).encode()
        except Exception:  # it is only about metrics
            logger.debug("a task cannot tell its metrics", exc_info=True)
            return None


class _Process:
    """All that this process tells. It runs one task at a time, but for different jobs."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._running: list[Telling] = []
        self._last: list[tuple[Where, bytes]] = []
        """The last messages of tasks that have ended."""
        self._woken = threading.Event()
        self._tellers: dict[Where, tuple[Teller, float]] = {}
        """By driver, the connection, and when it was last used."""
        threading.Thread(target=self._run, name="pyrite-telling", daemon=True).start()

    def begin(self, telling: Telling) -> None:
        with self._lock:
            self._running.append(telling)
        self._woken.set()

    def end(self, telling: Telling, last: bytes | None) -> None:
        with self._lock:
            if telling in self._running:  # or it began before a fork
                self._running.remove(telling)
            if last is not None:
                self._last.append((telling.where, last))
        self._woken.set()

    def _run(self) -> None:
        while True:
            self._woken.wait(self._patience())
            self._woken.clear()
            try:
                self._tell()
            except Exception:
                logger.debug("a task cannot tell its metrics", exc_info=True)

    def _patience(self) -> float | None:
        with self._lock:
            times = [telling.due for telling in self._running]
        times += [used + IDLE_SECONDS for _, used in self._tellers.values()]
        return max(0.0, min(times) - monotonic()) if times else None

    def _tell(self) -> None:
        now = monotonic()
        with self._lock:
            last, self._last = self._last, []
            due = [telling for telling in self._running if telling.due <= now]
        for telling in due:
            telling.due = now + telling.where.seconds
            message = telling.message()
            if message is not None:
                self._send(telling.where, message, now)
        for where, message in last:
            self._send(where, message, now)
        for where, (teller, used) in list(self._tellers.items()):
            if used + IDLE_SECONDS <= now:
                teller.close()
                del self._tellers[where]

    def _send(self, where: Where, message: bytes, now: float) -> None:
        from pyrite.wire.telling import Teller

        known = self._tellers.get(where)
        teller = known[0] if known else Teller(where.address, where.public, where.secret)
        self._tellers[where] = (teller, now)
        teller.tell(message)


_process: _Process | None = None
_lock = threading.Lock()


def _this_process() -> _Process:
    global _process
    with _lock:
        if _process is None or _process.pid != os.getpid():  # a forked child has no threads
            _process = _Process()
        return _process
