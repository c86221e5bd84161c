"""Pace: how many items to hand to a processor at a time, so that a call takes about a millisecond
and yet costs little per item."""

from __future__ import annotations


class Pace:
    """Starts small, doubles while calls are quick, and halves when one took too long.

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
        """Learns from a call that handled `count` items."""
        if seconds < self.QUICK:
            if count >= self.limit and self.limit < self.MOST:
                self.limit *= 2
        elif seconds > self.SLOW and count:
            self.limit = max(1, min(self.limit, int(count * self.QUICK / seconds)))


class SteadyPace(Pace):
    """Always the same number: for whoever must do the same again, however long it takes."""

    __slots__ = ()

    def __init__(self) -> None:
        self.limit = self.MOST

    def took(self, count: int, seconds: float) -> None:
        """Nothing to learn."""
