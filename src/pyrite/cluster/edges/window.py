"""Flow control of one distributed edge between two members, as arithmetic: what the sender may
send, and how large the receiver's window is. Pure; the clock is the caller's.

Totals of weights are counted in units of 2^16, and what travels of them is 32 bits wide: it wraps
around, and only differences count.
"""

from __future__ import annotations

from typing import Final

UNIT_BITS: Final = 16
UNIT: Final = 1 << UNIT_BITS
FIRST_WINDOW: Final = 800
PERIOD: Final = 100_000_000
"""Nanoseconds between acks."""
ITEM_WEIGHT: Final = 56
"""What an item weighs besides its bytes: about what a small object takes in memory."""


def int32(number: int) -> int:
    """The number as 32 bits with a sign hold it.

    >>> int32(5), int32(2**31), int32(-(2**31) - 1)
    (5, -2147483648, 2147483647)
    """
    return ((number + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def compress(total: int) -> int:
    """A total of weights in units.

    >>> compress(UNIT - 1), compress(UNIT), compress(UNIT << 31)
    (0, 1, -2147483648)
    """
    return int32(total >> UNIT_BITS)


def weight_of(size: int, count: int) -> int:
    """What a packet of `size` bytes and `count` items weighs."""
    return size + ITEM_WEIGHT * count


class SendLimit:
    """How far a sender may go. Before the first ack it may fill one unit, with one packet over."""

    __slots__ = ("_limit", "_sent")

    def __init__(self, sent: int = 0) -> None:
        self._sent = sent
        self._limit = compress(sent)

    @property
    def is_open(self) -> bool:
        """Whether another packet may be sent."""
        return int32(compress(self._sent) - self._limit) <= 0

    def sent(self, weight: int) -> None:
        self._sent += weight

    def acked(self, limit: int) -> None:
        """The receiver has said how far the sender may go."""
        self._limit = limit


class ReceiveWindow:
    """How much the receiver lets a sender have under way: some times what it takes in between two
    acks."""

    __slots__ = (
        "_accepted",
        "_acked",
        "_acked_at",
        "_period",
        "_received",
        "_told",
        "multiplier",
        "window",
    )

    def __init__(self, multiplier: int, *, period: int = PERIOD, start: int = 0) -> None:
        self.multiplier = multiplier
        self._period = period
        self._received = start
        self._accepted = start
        self._acked = compress(start)
        self._acked_at: int | None = None
        self._told: int | None = None
        """The limit that the sender was told last."""
        self.window = FIRST_WINDOW
        """In units."""

    def received(self, weight: int) -> None:
        """A packet has arrived."""
        self._received += weight

    def accepted(self, weight: int) -> None:
        """Processors have taken over all items of a packet."""
        self._accepted += weight

    @property
    def waits_for_first_ack(self) -> bool:
        """Whether the sender has sent what it may send before the first ack."""
        return self._acked_at is None and int32(compress(self._received) - self._acked) > 0

    @property
    def held(self) -> int:
        """The weight of what has arrived and was not accepted yet."""
        return self._received - self._accepted

    def ack(self, now: int) -> int | None:
        """The limit to tell the sender, at a time in nanoseconds; None if it knows already, or has
        sent so little that it needs none."""
        if self._acked_at is None and not self.waits_for_first_ack:
            return None
        acked = compress(self._accepted)
        if self._acked_at is not None:
            self._adapt(int32(acked - self._acked), max(1, now - self._acked_at))
        self._acked, self._acked_at = acked, now
        limit = int32(acked + self.window)
        if limit == self._told:
            return None
        self._told = limit
        return limit

    def _adapt(self, delta: int, elapsed: int) -> None:
        target = self.multiplier * -(-self._period * delta // elapsed)
        if target < self.window and not self.held:
            return  # too little has come to tell how much could be taken in
        half = abs(target - self.window) // 2
        self.window += half if target > self.window else -half
