"""Flow control of one distributed edge between two members, as arithmetic: how much the sender may
send, and how large the receiver's window is. Pure; the caller passes the time.

Totals of weights are counted in units of 2^16 and sent as 32-bit integers. These wrap around, so
only their differences are used.
"""

from __future__ import annotations

from typing import Final

UNIT_BITS: Final = 16
UNIT: Final = 1 << UNIT_BITS
FIRST_WINDOW: Final = 800
PERIOD: Final = 100_000_000
"""Nanoseconds between acks."""
ITEM_WEIGHT: Final = 56
"""Added to the bytes of each item: about the memory that a small object takes."""


def int32(number: int) -> int:
    """Wraps a number to a signed 32-bit integer.

    >>> int32(5), int32(2**31), int32(-(2**31) - 1)
    (5, -2147483648, 2147483647)
    """
    return ((number + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def compress(total: int) -> int:
    """Converts a total of weights to units.

    >>> compress(UNIT - 1), compress(UNIT), compress(UNIT << 31)
    (0, 1, -2147483648)
    """
    return int32(total >> UNIT_BITS)


def weight_of(size: int, count: int) -> int:
    """The weight of a packet of `size` bytes and `count` items."""
    return size + ITEM_WEIGHT * count


class SendLimit:
    """How much a sender may send. Before the first ack that is one unit and one more packet."""

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
        """The receiver allows the sender to send up to this limit."""
        self._limit = limit


class ReceiveWindow:
    """The receiver's window for one sender: a multiple of what it accepts between two acks."""

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
        """The limit in the last ack."""
        self.window = FIRST_WINDOW
        """In units."""

    def received(self, weight: int) -> None:
        """A packet has arrived."""
        self._received += weight

    def accepted(self, weight: int) -> None:
        """The processors have all items of a packet."""
        self._accepted += weight

    @property
    def waits_for_first_ack(self) -> bool:
        """Whether the sender has sent all that it may send before the first ack."""
        return self._acked_at is None and int32(compress(self._received) - self._acked) > 0

    @property
    def held(self) -> int:
        """The weight of packets that have arrived and are not accepted yet."""
        return self._received - self._accepted

    def ack(self, now: int) -> int | None:
        """The limit to send in an ack, at a time in nanoseconds. None if the sender knows it, or
        needs none yet."""
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
            return  # too little has arrived to measure how much could be accepted
        half = abs(target - self.window) // 2
        self.window += half if target > self.window else -half
