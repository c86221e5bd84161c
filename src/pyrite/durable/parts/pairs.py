"""The items of a partitioned edge on their way to other parts. As long as all are pairs, their
halves are kept in two lists for each part: so the pairs need not be made again to pickle them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import Route
from pyrite.exchange.spreading import write_spread, write_spread_pairs
from pyrite.weights import count_of


class Halves:
    """The halves of pairs, by the part that they go to. `places` has that part for each
    partition."""

    def __init__(self, places: Sequence[int]) -> None:
        count = 1 + max(places)
        self.firsts: list[list[Any]] = [[] for _ in range(count)]
        self.seconds: list[list[Any]] = [[] for _ in range(count)]
        self.firsts_of_partition = [self.firsts[place] for place in places]
        self.seconds_of_partition = [self.seconds[place] for place in places]

    def take(self, place: int) -> tuple[list[Any], list[Any]]:
        firsts, seconds = self.firsts[place].copy(), self.seconds[place].copy()
        self.firsts[place].clear()
        self.seconds[place].clear()
        return firsts, seconds


class PairsRoute(Route):
    """`add` takes the items that are not pairs, by the part that they go to. From the first of them
    on, it takes all."""

    __slots__ = ("_add", "_are_pairs", "_halves", "_places", "_spread", "_spread_pairs")

    def __init__(
        self,
        edge: EdgePlan,
        partition: Callable[[Any], int],
        places: Sequence[int],
        halves: Halves,
        add: Callable[[int, list[Any]], None],
    ) -> None:
        super().__init__(())
        self._places = places
        self._halves = halves
        self._add = add
        self._are_pairs = True
        self._spread = write_spread(edge, partition, len(places))
        self._spread_pairs = write_spread_pairs(edge, partition, len(places))

    def drain(self, bucket: list[Any]) -> bool:
        count = len(bucket)
        self.moved += count_of(bucket)
        if self._are_pairs:
            halves = self._halves
            others = self._spread_pairs(
                bucket, halves.firsts_of_partition, halves.seconds_of_partition
            )
            if others:
                self._are_pairs = False
                self._spread_others(others)
        else:
            self._spread_others(bucket)
        bucket.clear()
        return count > 0

    @property
    def pending(self) -> bool:
        return False

    def _spread_others(self, items: list[Any]) -> None:
        lists: list[list[Any]] = [[] for _ in self._halves.firsts]
        self._spread(items, [lists[place] for place in self._places])
        for place, found in enumerate(lists):
            if found:
                self._add(place, found)
