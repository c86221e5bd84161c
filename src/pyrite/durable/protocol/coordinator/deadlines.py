"""When offers must have been acked. The clock is the caller's."""

from __future__ import annotations

from collections import deque

from pyrite.durable.protocol.coordinator.draft import Timer
from pyrite.durable.protocol.coordinator.events import Revoke


class Deadlines:
    """Timers that all last equally long, so they end in the order in which they began. None is
    disarmed: revoking an offer that was acked changes nothing.

    >>> deadlines = Deadlines(seconds=5.0)
    >>> deadlines.arm(Timer("p1", 7), now=100.0)
    >>> deadlines.due(now=104.0), deadlines.next(), deadlines.due(now=105.0)
    ([], 105.0, [Revoke(peer='p1', offer=7)])
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._timers: deque[tuple[float, Timer]] = deque()

    def arm(self, timer: Timer, *, now: float) -> None:
        self._timers.append((now + self._seconds, timer))

    def next(self) -> float | None:
        """When the next timer ends."""
        return self._timers[0][0] if self._timers else None

    def due(self, *, now: float) -> list[Revoke]:
        """The offers whose time is over. Each is returned once."""
        over = []
        while self._timers and self._timers[0][0] <= now:
            timer = self._timers.popleft()[1]
            over.append(Revoke(timer.peer, timer.offer))
        return over
