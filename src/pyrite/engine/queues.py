"""The queue between two processors: bounded, with a single producer and a single consumer.

It holds chunks (lists) and counts items. If these are batches of rows, it counts their bytes, too,
and is full when it has many. It needs no lock: only the producer writes what was added, and only
the consumer writes what was taken. Each side may read an old value of the other's counter. Then the
producer sees less room, or the consumer fewer items, than there are; that is safe.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Final

from pyrite.weights import BYTES_AT_ONCE, MOST_BYTES_QUEUED, how_many_fit, is_batch

UNBOUNDED: Final = sys.maxsize


class Done:
    """The done marker, which follows the last item of a queue."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DONE"


DONE: Final = Done()


class _Batches(list[Any]):
    """A chunk that begins with a batch of rows, and is counted in bytes and rows."""

    def take(self, start: int, end: int) -> list[Any]:
        """Some of the items, which the chunk keeps no longer."""
        taken = self[start:end]
        self[start:end] = [None] * len(taken)
        return taken

    def weigh(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of some of the items, and how many rows more than batches they have."""
        batches = [each for each in self[start:end] if is_batch(each)]
        return (
            sum(each.nbytes for each in batches),
            sum(each.num_rows for each in batches) - len(batches),
        )


class SpscQueue:
    """A single-producer, single-consumer queue for at most `capacity` items. Unless it is
    unbounded, batches in it have at most MOST_BYTES_QUEUED bytes, or it holds only one.

    >>> queue = SpscQueue(3)
    >>> queue.offer([1, 2]), queue.offer([3, 4]), len(queue)
    (2, 1, 3)
    >>> queue.poll(2), queue.poll(2), queue.poll(2)
    ([1, 2], [3], None)
    """

    __slots__ = (
        "_added",
        "_added_bytes",
        "_added_rows",
        "_at",
        "_capacity",
        "_chunks",
        "_most_bytes",
        "_taken",
        "_taken_bytes",
        "_taken_rows",
    )

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._chunks: deque[list[Any] | Done] = deque()
        self._added = 0
        self._taken = 0
        self._added_bytes = self._taken_bytes = 0
        self._added_rows = self._taken_rows = 0
        """Of batches only: how many rows more than batches there were."""
        self._most_bytes = UNBOUNDED if capacity == UNBOUNDED else MOST_BYTES_QUEUED
        self._at = 0
        """How many items of the first chunk have been taken. Only the consumer uses this."""

    def offer(self, items: list[Any]) -> int:
        """Adds items from the start of the list until the queue is full. Returns how many it added.
        The queue keeps the list: the caller must not change it afterwards."""
        room = self.room()
        if room <= 0 or not items:
            return 0
        if len(items) > room:
            items = items[:room]
        if is_batch(items[0]):
            items = self._weighed(items)
            if not items:
                return 0
        # Before the chunk is appended: otherwise the consumer could take items that are not counted
        # yet, and the length would be negative.
        self._added += len(items)
        self._chunks.append(items)
        return len(items)

    def _weighed(self, batches: list[Any]) -> _Batches:
        """The batches that there is room for. They are counted."""
        held = self._added_bytes - self._taken_bytes
        fit = how_many_fit(batches, self._most_bytes - held, is_empty=not len(self))
        weighed = _Batches(batches[:fit])
        size, rows = weighed.weigh(0, fit)
        self._added_bytes += size
        self._added_rows += rows
        return weighed

    def room(self) -> int:
        """How many items fit. Batches may have too many bytes: `offer` may take fewer of them."""
        if self._added_bytes - self._taken_bytes >= self._most_bytes:
            return 0
        return self._capacity - (self._added - self._taken)

    def finish(self) -> None:
        """Adds the done marker. Nothing may follow it."""
        self._chunks.append(DONE)

    def poll(self, limit: int) -> list[Any] | Done | None:
        """Returns the next items, at most `limit`, or about BYTES_AT_ONCE of batches; the done
        marker; or None if the queue is empty."""
        chunks = self._chunks
        if not chunks:
            return None
        chunk = chunks[0]
        if isinstance(chunk, Done):
            return chunks.popleft()
        if type(chunk) is _Batches:
            limit = min(limit, how_many_fit(chunk[self._at :], BYTES_AT_ONCE))
            size, rows = chunk.weigh(self._at, self._at + limit)
            self._taken_bytes += size
            self._taken_rows += rows
        if self._at or len(chunk) > limit:
            whole, start = chunk, self._at
            end = start + limit
            chunk = whole.take(start, end) if type(whole) is _Batches else whole[start:end]
            self._at = end
            if self._at >= len(whole):
                chunks.popleft()
                self._at = 0
        else:
            chunks.popleft()
        self._taken += len(chunk)
        return chunk

    @property
    def capacity(self) -> int:
        """How many items it holds; 0 if it is unbounded."""
        return 0 if self._capacity == UNBOUNDED else self._capacity

    def __len__(self) -> int:
        return self._added - self._taken

    @property
    def rows(self) -> int:
        """Its length in metrics: a batch counts as its rows."""
        return len(self) + self._added_rows - self._taken_rows
