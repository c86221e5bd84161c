"""The queue between two processors: bounded, with a single producer and a single consumer.

It holds chunks (lists) and counts items. It needs no lock: only the producer writes `_added`, and
only the consumer writes `_taken`. Each side may read an old value of the other's counter. Then the
producer sees less room, or the consumer fewer items, than there are; that is safe.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Final

UNBOUNDED: Final = sys.maxsize


class Done:
    """The done marker, which follows the last item of a queue."""

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
        """How many items of the first chunk have been taken. Only the consumer uses this."""

    def offer(self, items: list[Any]) -> int:
        """Adds items from the start of the list until the queue is full. Returns how many it added.
        The queue keeps the list: the caller must not change it afterwards."""
        room = self.room()
        if room <= 0:
            return 0
        if len(items) > room:
            items = items[:room]
        # Before the chunk is appended: otherwise the consumer could take items that are not counted
        # yet, and the length would be negative.
        self._added += len(items)
        self._chunks.append(items)
        return len(items)

    def room(self) -> int:
        return self._capacity - (self._added - self._taken)

    def finish(self) -> None:
        """Adds the done marker. Nothing may follow it."""
        self._chunks.append(DONE)

    def poll(self, limit: int) -> list[Any] | Done | None:
        """Returns the next items, at most `limit`; the done marker; or None if the queue is
        empty."""
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
