"""The queue between two processors: bounded, for a single producer and a single consumer.

It holds chunks (lists) and counts items. Neither side waits or locks: the producer alone writes
`_added`, the consumer alone `_taken`; what one reads of the other's number may be old, which only
makes the queue look fuller, or emptier, than it is.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Final

UNBOUNDED: Final = sys.maxsize


class Done:
    """The done marker: follows the last item on a queue."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DONE"


DONE: Final = Done()


class SpscQueue:
    """A single-producer, single-consumer queue for at most `capacity` items.

    >>> queue = SpscQueue(3)
    >>> queue.offer([1, 2]), queue.offer([3, 4]), len(queue)
    (2, 1, 3)
    >>> queue.poll(2), queue.poll(2), queue.poll(2)
    ([1, 2], [3], None)
    """

    __slots__ = ("_added", "_at", "_capacity", "_chunks", "_taken")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._chunks: deque[list[Any] | Done] = deque()
        self._added = 0
        self._taken = 0
        self._at = 0
        """How much of the first chunk has been taken. The consumer's own."""

    def offer(self, items: list[Any]) -> int:
        """Adds as many of the items as there is room for, from the first on; returns how many. The
        list is then the queue's."""
        room = self.room()
        if room <= 0:
            return 0
        if len(items) > room:
            items = items[:room]
        self._added += len(
            items
        )  # before the items are there, so that they are never counted as taken first
        self._chunks.append(items)
        return len(items)

    def room(self) -> int:
        return self._capacity - (self._added - self._taken)

    def finish(self) -> None:
        """Adds the done marker. Nothing may follow it."""
        self._chunks.append(DONE)

    def poll(self, limit: int) -> list[Any] | Done | None:
        """The next items, at most `limit` of them; the done marker; or None when there is
        nothing."""
        chunks = self._chunks
        if not chunks:
            return None
        chunk = chunks[0]
        if isinstance(chunk, Done):
            return chunks.popleft()
        if self._at or len(chunk) > limit:
            whole, start = chunk, self._at
            chunk = whole[start : start + limit]
            self._at = start + limit
            if self._at >= len(whole):
                chunks.popleft()
                self._at = 0
        else:
            chunks.popleft()
        self._taken += len(chunk)
        return chunk

    def __len__(self) -> int:
        return self._added - self._taken
