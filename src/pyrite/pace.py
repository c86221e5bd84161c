"""Pace: how many items to pass to a processor per call, so that a call takes about a millisecond
and its overhead per item is small."""

from __future__ import annotations


class Pace:
    """A limit that starts small, doubles while calls are fast, and shrinks when a call is slow.

    >>> pace = Pace()
    >>> for _ in range(10): pace.took(pace.limit, 0.0001)
    >>> pace.limit
    1024
    >>> pace.took(1024, 1.0); pace.limit
    1
    """

    __slots__ = ("limit",)

    START, MOST = 16, 1024
    QUICK, SLOW = 0.0005, 0.002

    def __init__(self) -> None:
        self.limit = self.START

    def took(self, count: int, seconds: float) -> None:
        """Adapts the limit after a call that took `count` items and this many seconds."""
        if seconds < self.QUICK:
            if count >= self.limit and self.limit < self.MOST:
                self.limit *= 2
        elif seconds > self.SLOW and count:
            self.limit = max(1, min(self.limit, int(count * self.QUICK / seconds)))


class SteadyPace(Pace):
    """A limit that never changes, so that a task that is run again makes the same calls."""

    __slots__ = ()

    def __init__(self) -> None:
        self.limit = self.MOST

    def took(self, count: int, seconds: float) -> None:
        """Does nothing."""
