"""Figures: what members know about a job that runs, and how a client reads it. Nobody sends any
unless somebody asks, except for the last ones, which come with the end of a job."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyrite.engine.metrics import added_up
from pyrite.errors import PyriteError

PERIOD: Final = 0.5
"""A member is asked about a job once in so many seconds, however often a client looks."""
PATIENCE: Final = 0.5
"""How long a client waits for an answer, before it shows what it knew before. A function of the
user's may keep a member busy for long."""


@dataclass(frozen=True, slots=True)
class Figures:
    metrics: dict[str, Any] = field(default_factory=dict)
    progress: list[tuple[str, int, int]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    members: list[dict[str, Any]] = field(default_factory=list)
    page: str | None = None


@dataclass(frozen=True, slots=True)
class PartFigures:
    """Of one member's part of a light job. The metrics are packed: only who shows them adds them
    up."""

    metrics: bytes
    process: dict[str, Any] | None = None


def figures_of(parts: Sequence[PartFigures]) -> Figures:
    """The figures of a light job, from those of its parts."""
    return Figures(
        added([part.metrics for part in parts]),
        members=[part.process for part in parts if part.process is not None],
    )


def added(packed: Sequence[bytes]) -> dict[str, Any]:
    """The metrics of all members, by vertex."""
    of_members = [pickle.loads(each) for each in packed if each]
    order = dict.fromkeys(name for each in of_members for name in each)
    return added_up(of_members, list(order))


class RemoteFigures:
    """The figures of a job as a client has them. `ask` sends a question; it returns None if no
    member can be asked yet. The answer is read by `read`; it is None if the member does not know
    the job, yet or any more, or an empty list."""

    def __init__(
        self,
        ask: Callable[[], Future[Any] | None],
        read: Callable[[Any], Figures] = lambda answer: answer,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = Figures()
        self._asked: Future[Any] | None = None
        self._next = 0.0
        self._last: Callable[[], Figures] | None = None

    def now(self) -> Figures:
        """What is known now. Once the job has ended, this does not change any more."""
        if self._last is None:
            with self._lock:
                asked = self._question()
            if asked is not None:
                try:
                    answer = asked.result(PATIENCE)
                except (TimeoutError, PyriteError):  # if a member is lost, the job's handle says so
                    answer = None
                with self._lock:
                    if answer and asked is self._asked:
                        self._seen = self._read(answer)
        last = self._last
        return self._seen if last is None else last()

    def end(self, last: Callable[[], Figures | None]) -> None:
        """The job has ended. `last` gives its last figures when they are first wanted; None if
        there are none, so that what was seen before stays."""
        read: list[Figures] = []

        def once() -> Figures:
            with self._lock:
                if not read:
                    read.append(last() or replace(self._seen, members=[]))
                return read[0]

        self._last = once

    @property
    def has_ended(self) -> bool:
        return self._last is not None

    def _question(self) -> Future[Any] | None:
        """The question whose answer to wait for. One that has no answer after a period is asked
        anew: then the member answers with what it knows."""
        now = self._clock()
        if now >= self._next:
            self._next = now + PERIOD
            self._asked = self._ask()
            return self._asked
        return None if self._asked is None or self._asked.done() else self._asked
