"""Inbox and Outbox: what a processor is given, and where it puts what it emits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyrite.errors import ProcessorError


class Inbox:
    """The items that arrived on one edge and are not processed yet. What a processor leaves in it
    is presented again.

    Iterating takes the items out one by one; `drain` takes them all.

    >>> inbox = Inbox(["a", "b", "c"])
    >>> inbox.peek(), inbox.poll(), len(inbox), list(inbox), inbox.poll()
    ('a', 'a', 2, ['b', 'c'], None)
    """

    __slots__ = ("_items", "_next")

    def __init__(self, items: Sequence[Any] = ()) -> None:
        self._items = list(items)
        self._next = 0

    def peek(self) -> Any:
        """The first item, which stays; None if there is none."""
        return self._items[self._next] if self._next < len(self._items) else None

    def poll(self) -> Any:
        """Takes the first item out; None if there is none."""
        if self._next >= len(self._items):
            return None
        self._next += 1
        return self._items[self._next - 1]

    def drain(self) -> list[Any]:
        """Takes all items out, as a list."""
        items = self.pending()
        self.remove(len(items))
        return items

    def pending(self) -> list[Any]:
        """All items, which stay until `remove`. The list is the inbox's own: do not change it."""
        if self._next:
            del self._items[: self._next]
            self._next = 0
        return self._items

    def remove(self, count: int = 1) -> None:
        """Takes the first `count` items out."""
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
        """Adds items at the end. For the engine, and for tests of processors."""
        if self._next == len(self._items):
            self._items = items
            self._next = 0
        else:
            self.pending().extend(items)

    def last_taken(self) -> Any:
        """The item taken out last, as far as it is still known: the one to name when a processor
        raises."""
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
    """One bucket per outbound edge. `add` never refuses; a bucket at its high water mark is full.

    A processor that sees a full bucket should return and let the engine drain the outbox.

    >>> outbox = Outbox([2, 2])
    >>> outbox.add("x"); outbox.add("y", 1); outbox.buckets, outbox.is_full(), outbox.is_full(0)
    ([['x'], ['x', 'y']], True, False)
    """

    __slots__ = ("buckets", "high_water_marks", "vertex")

    def __init__(self, high_water_marks: Sequence[int], vertex: str = "") -> None:
        self.high_water_marks = list(high_water_marks)
        self.buckets: list[list[Any]] = [[] for _ in self.high_water_marks]
        self.vertex = vertex

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
        """Emits a list of items at once."""
        if holds_none(items):
            raise none_emitted(self.vertex)
        if ordinal is None:
            for bucket in self.buckets:
                bucket.extend(items)
        else:
            self.bucket(ordinal).extend(items)

    def room(self, ordinal: int | None = None) -> int:
        """How many more items fit below the high water mark: of the edge at `ordinal`, or of the
        fullest of all."""
        if ordinal is None:
            buckets = self.buckets
            if len(buckets) == 1:
                return self.high_water_marks[0] - len(buckets[0])
            return min(
                (mark - len(bucket) for mark, bucket in zip(self.high_water_marks, buckets)),
                default=_NO_EDGE_ROOM,
            )
        held = len(self.bucket(ordinal))
        return self.high_water_marks[ordinal] - held

    def is_full(self, ordinal: int | None = None) -> bool:
        """Whether the bucket at `ordinal`, or any bucket, is at its high water mark."""
        return self.room(ordinal) <= 0

    def bucket(self, ordinal: int) -> list[Any]:
        """The bucket of one edge."""
        if not 0 <= ordinal < len(self.buckets):
            edges = len(self.buckets)
            raise ProcessorError(
                f"vertex '{self.vertex}' emitted to ordinal {ordinal}, but it has {edges or 'no'} "
                "outbound "
                f"{'edge' if edges == 1 else 'edges'}{f' (0 to {edges - 1})' if edges else ''}"
            )
        return self.buckets[ordinal]

    def __len__(self) -> int:
        return sum(map(len, self.buckets))


_NO_EDGE_ROOM = 1 << 30  # a sink may "emit" without end: nothing is kept


def none_emitted(vertex: str, what: str = "") -> ProcessorError:
    return ProcessorError(
        f"vertex '{vertex}' emitted None{what}; None cannot travel over an edge: leave it out, or "
        "emit a value that stands for it"
    )


def holds_none(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether None itself is among the items, whatever their == answers."""
    try:
        if None not in items:
            return False
    except Exception:  # an item's == raised, as that of an array may: only identity can tell
        pass
    return any(item is None for item in items)
