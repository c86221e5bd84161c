"""A set whose member with the lowest rank is found at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")
Rank = tuple[int, ...]


class Ranked(Generic[T]):
    """A heap in which entries that are no longer true stay until they come to the top.

    >>> parts = Ranked([("b", (1,)), ("a", (0,))])
    >>> parts.put("a", (2,))
    >>> parts.first(), len(parts), "c" in parts
    ('b', 2, False)
    """

    __slots__ = ("_heap", "_ranks")

    def __init__(self, items: Iterable[tuple[T, Rank]] = ()) -> None:
        self._ranks: dict[T, Rank] = dict(items)
        self._heap: list[tuple[Rank, T]] = [(rank, item) for item, rank in self._ranks.items()]
        heapify(self._heap)

    def put(self, item: T, rank: Rank) -> None:
        if self._ranks.get(item) == rank:
            return
        self._ranks[item] = rank
        heappush(self._heap, (rank, item))
        if len(self._heap) > 2 * len(self._ranks) + 64:
            self._heap = [(rank, item) for item, rank in self._ranks.items()]
            heapify(self._heap)

    def discard(self, item: T) -> None:
        self._ranks.pop(item, None)

    def first(self) -> T | None:
        while self._heap:
            rank, item = self._heap[0]
            if self._ranks.get(item) == rank:
                return item
            heappop(self._heap)
        return None

    def rank(self, item: T) -> Rank:
        return self._ranks[item]

    def ranks(self) -> dict[T, Rank]:
        return dict(self._ranks)

    def __contains__(self, item: object) -> bool:
        return item in self._ranks

    def __iter__(self) -> Iterator[T]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)
