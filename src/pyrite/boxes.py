"""Inbox and Outbox: a processor takes its input from the inbox, and emits items to the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyrite.errors import ProcessorError
from pyrite.weights import MOST_BYTES_QUEUED, is_batch


class Inbox:
    """Items of one edge that are not processed yet. The engine presents the items that a processor
    leaves in it again.

    Iterating removes the items one by one; `drain` removes them all.

    >>> inbox = Inbox(["a", "b", "c"])
    >>> inbox.peek(), inbox.poll(), len(inbox), list(inbox), inbox.poll()
    ('a', 'a', 2, ['b', 'c'], None)
    """

    __slots__ = ("_items", "_next")

    def __init__(self, items: Sequence[Any] = ()) -> None:
        self._items = list(items)
        self._next = 0

    def peek(self) -> Any:
        """The first item, without removing it; None if the inbox is empty."""
        return self._items[self._next] if self._next < len(self._items) else None

    def poll(self) -> Any:
        """Removes and returns the first item; None if the inbox is empty."""
        if self._next >= len(self._items):
            return None
        self._next += 1
        return self._items[self._next - 1]

    def drain(self) -> list[Any]:
        """Removes all items and returns them as a list."""
        items = self.pending()
        self.remove(len(items))
        return items

    def pending(self) -> list[Any]:
        """All items as a list, without removing them. The list belongs to the inbox: do not change
        it."""
        if self._next:
            del self._items[: self._next]
            self._next = 0
        return self._items

    def remove(self, count: int = 1) -> None:
        """Removes the first `count` items."""
        if not 0 <= count <= len(self):
            raise ProcessorError(
                f"cannot remove {count} items from an inbox that holds {len(self)}"
            )
        if count == len(self._items) - self._next:
            self._items = []
            self._next = 0
        else:
            self._next += count

    def extend(self, items: list[Any]) -> None:
        """Adds items at the end. Only the engine and tests of processors call this."""
        if self._next == len(self._items):
            self._items = items
            self._next = 0
        else:
            self.pending().extend(items)

    def last_taken(self) -> Any:
        """The item that was removed last, or the first item if the inbox no longer knows that. It
        is named when a processor raises."""
        return self._items[self._next - 1] if self._next else self.peek()

    def __len__(self) -> int:
        return len(self._items) - self._next

    def __iter__(self) -> Iterator[Any]:
        while self._next < len(self._items):
            self._next += 1
            yield self._items[self._next - 1]

    def __repr__(self) -> str:
        return f"Inbox({self._items[self._next :]!r})"


class Outbox:
    """Has one bucket per outbound edge. A bucket is full at its high water mark, or with 32 MB of
    batches of rows, but `add` still accepts items.

    A processor should return when a bucket is full, so that the engine can drain the outbox.

    >>> outbox = Outbox([2, 2])
    >>> outbox.add("x"); outbox.add("y", 1); outbox.buckets, outbox.is_full(), outbox.is_full(0)
    ([['x'], ['x', 'y']], True, False)
    """

    __slots__ = ("_counted", "buckets", "high_water_marks", "letters", "vertex")

    def __init__(
        self, high_water_marks: Sequence[int], vertex: str = "", *, letters: int = 0
    ) -> None:
        """`letters` is the number of edges for dead letters. What a processor emits does not go
        there."""
        self.high_water_marks = list(high_water_marks)
        self.buckets: list[list[Any]] = [[] for _ in self.high_water_marks]
        self.letters: list[list[Any]] = [[] for _ in range(letters)]
        self.vertex = vertex
        self._counted = [(0, 0, 0)] * len(self.buckets)
        """By bucket: how many of its items are counted, their bytes, and which is the last."""

    def add(self, item: Any, ordinal: int | None = None) -> None:
        """Emits an item to the edge at `ordinal`, or to all edges."""
        if item is None:
            raise none_emitted(self.vertex)
        if ordinal is None:
            for bucket in self.buckets:
                bucket.append(item)
        else:
            self.bucket(ordinal).append(item)

    def add_all(self, items: list[Any] | tuple[Any, ...], ordinal: int | None = None) -> None:
        """Emits all items of a list to the edge at `ordinal`, or to all edges."""
        if holds_none(items):
            raise none_emitted(self.vertex)
        if ordinal is None:
            for bucket in self.buckets:
                bucket.extend(items)
        else:
            self.bucket(ordinal).extend(items)

    def room(self, ordinal: int | None = None) -> int:
        """How many more items fit into the bucket at `ordinal`, or into every bucket, below the
        high water mark."""
        if ordinal is None:
            buckets = self.buckets
            if len(buckets) == 1:
                return self._room(0)
            return min(map(self._room, range(len(buckets))), default=_NO_EDGE_ROOM)
        self.bucket(ordinal)
        return self._room(ordinal)

    def is_full(self, ordinal: int | None = None) -> bool:
        """Whether the bucket at `ordinal`, or any bucket, is at its high water mark."""
        return self.room(ordinal) <= 0

    def bucket(self, ordinal: int) -> list[Any]:
        """The bucket of one edge."""
        if not 0 <= ordinal < len(self.buckets):
            edges = len(self.buckets)
            raise ProcessorError(
                f"vertex '{self.vertex}' emitted to ordinal {ordinal}, but it has {edges or 'no'} "
                f"outbound {'edge' if edges == 1 else 'edges'}"
                f"{f' (0 to {edges - 1})' if edges else ''}"
            )
        return self.buckets[ordinal]

    def _room(self, ordinal: int) -> int:
        bucket = self.buckets[ordinal]
        if bucket and is_batch(bucket[0]) and self._size(ordinal) >= MOST_BYTES_QUEUED:
            return 0
        return self.high_water_marks[ordinal] - len(bucket)

    def _size(self, ordinal: int) -> int:
        """The bytes of the batches in a bucket. Those that were counted before are counted once."""
        bucket = self.buckets[ordinal]
        size: int
        count, size, last = self._counted[ordinal]
        if count > len(bucket) or (count and id(bucket[count - 1]) != last):
            count = size = 0  # it was drained meanwhile
        size += sum(each.nbytes for each in bucket[count:] if is_batch(each))
        self._counted[ordinal] = len(bucket), size, id(bucket[-1])
        return size

    def __len__(self) -> int:
        return sum(map(len, self.buckets)) + sum(map(len, self.letters))


_NO_EDGE_ROOM = 1 << 30  # without outbound edges, emitted items are dropped


def none_emitted(vertex: str, what: str = "") -> ProcessorError:
    return ProcessorError(
        f"vertex '{vertex}' emitted None{what}; an edge cannot carry None. Emit nothing, or "
        "another value in place of None"
    )


def holds_none(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether one of the items is None. Items may have an unusual `==`."""
    try:
        if None not in items:
            return False
    except Exception:  # == of an item raised, as for arrays: compare by identity instead
        pass
    return any(item is None for item in items)
