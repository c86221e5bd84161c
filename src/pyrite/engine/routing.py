"""Routing: how one producer distributes the items of an edge over its outlets, for each forwarding
pattern.

A route moves items from a bucket of the outbox to outlets. It keeps the items that no outlet has
room for; then `pending` is true, and the engine does not call the processor. So a route holds no
more items than a bucket. It never drops or duplicates an item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrite.engine.ends import Outlet
from pyrite.weights import count_of, is_batch


class Route:
    """Sends the items of one producer over one edge. It empties the bucket at once, and keeps the
    items that no outlet has room for."""

    __slots__ = ("_at", "_rest", "moved", "outlets")
    puts_together = False
    """Whether it may hold items back, so that it can put more to them before they travel."""

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        self.outlets = list(outlets)
        self._rest: list[Any] = []
        self._at = 0
        """How many items of `_rest` every receiver has got."""
        self.moved = 0
        """How many items the route has taken from the bucket. A batch counts as its rows."""

    def drain(self, bucket: list[Any]) -> bool:
        """Moves items to the outlets as far as these have room. Returns whether any item moved."""
        if bucket:
            self._take(bucket)
        return self._give()

    @property
    def pending(self) -> bool:
        """Whether the route holds items that are not in their outlets yet."""
        return self._at < len(self._rest)

    @property
    def held_since(self) -> float | None:
        """The time from which on the route holds items back that could go; None if it holds
        none."""
        return None

    def let_go(self) -> None:
        """Holds nothing back any more of what it has: the next `drain` moves it."""

    def finish(self) -> None:
        """Puts the done marker into every outlet. The route must hold nothing."""
        for outlet in self.outlets:
            outlet.finish()

    def _take(self, bucket: list[Any]) -> None:
        self.moved += count_of(bucket)
        self._rest = self._rest[self._at :] + bucket
        self._at = 0
        bucket.clear()

    def _give(self) -> bool:
        raise NotImplementedError

    def _gave(self, count: int) -> bool:
        """Notes that every receiver has got the next `count` items."""
        self._at += count
        if self._at == len(self._rest):
            self._rest, self._at = [], 0
        return count > 0


class ToOne(Route):
    """Sends all items to a single outlet."""

    __slots__ = ("_outlet",)

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        super().__init__(outlets)
        (self._outlet,) = outlets

    def _give(self) -> bool:
        room = self._outlet.room()
        if room <= 0:
            return False
        rest, at = self._rest, self._at
        return self._gave(
            self._outlet.offer(rest[at : at + room] if at or room < len(rest) else rest)
        )


class Unicast(Route):
    """Sends each item to the next outlet in turn, and skips outlets that are full."""

    __slots__ = ("_turn",)

    def __init__(self, outlets: Sequence[Outlet], *, first: int = 0) -> None:
        super().__init__(outlets)
        self._turn = first % len(self.outlets)

    def _give(self) -> bool:
        outlets, rest, at, turn = self.outlets, self._rest, self._at, self._turn
        count = len(rest) - at
        if count and is_batch(rest[at]):
            return self._give_batches()
        rooms = [max(0, outlet.room()) for outlet in outlets]
        if min(rooms) < -(-count // len(outlets)):  # an outlet has no room for its share
            return self._give_one_by_one(rooms)
        left: list[Any] = []
        for i in range(min(len(outlets), count)):
            share = rest[at + i :: len(outlets)]
            taken = outlets[(turn + i) % len(outlets)].offer(share)
            if taken < len(share):
                left += share[taken:]
        self._turn = (turn + count) % len(outlets)
        return self._shared(count, left)

    def _give_one_by_one(self, rooms: list[int]) -> bool:
        outlets, rest, turn = self.outlets, self._rest, self._turn
        shares: list[list[Any]] = [[] for _ in outlets]
        count = min(sum(rooms), len(rest) - self._at)
        for item in rest[self._at : self._at + count]:
            while not rooms[turn]:
                turn = (turn + 1) % len(outlets)
            shares[turn].append(item)
            rooms[turn] -= 1
            turn = (turn + 1) % len(outlets)
        left: list[Any] = []
        for outlet, share in zip(outlets, shares):
            if share and (taken := outlet.offer(share)) < len(share):
                left += share[taken:]
        self._turn = turn
        return self._shared(count, left)

    def _shared(self, count: int, left: list[Any]) -> bool:
        """Notes that the next `count` items were offered, and which of them were not taken: batches
        among other items, whose bytes there was no room for."""
        moved = count > len(left)
        self._gave(count)
        if left:
            self._rest, self._at = left + self._rest[self._at :], 0
        return moved

    def _give_batches(self) -> bool:
        """One by one: how many an outlet takes depends on their bytes."""
        outlets, rest, count = self.outlets, self._rest, 0
        for item in rest[self._at :]:
            for skipped in range(len(outlets)):
                turn = (self._turn + skipped) % len(outlets)
                if outlets[turn].room() > 0 and outlets[turn].offer([item]):
                    self._turn = (turn + 1) % len(outlets)
                    break
            else:
                break
            count += 1
        return self._gave(count)


class Broadcast(Route):
    """Sends every item to every outlet. Outlets may be at different positions; an item is kept
    until all outlets have taken it."""

    __slots__ = ("_given",)

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        super().__init__(outlets)
        self._given = [0] * len(self.outlets)
        """How many items of `_rest` each outlet has taken."""

    def _take(self, bucket: list[Any]) -> None:
        self._given = [given - self._at for given in self._given]
        super()._take(bucket)

    def _give(self) -> bool:
        given, rest = self._given, self._rest
        moved = False
        for i, outlet in enumerate(self.outlets):
            room = outlet.room()
            if room > 0 and given[i] < len(rest):
                taken = outlet.offer(rest[given[i] : given[i] + room])
                given[i] += taken
                moved = moved or taken > 0
        if self._gave(min(given) - self._at) and not self._rest:
            self._given = [0] * len(self.outlets)
        return moved


Spread = Callable[[list[Any], list[list[Any]]], None]
"""`spread(items, lists)` appends each item to the list of its partition."""


class ByOutlet(Route):
    """Keeps the items for each outlet by themselves: an outlet without room stops no other."""

    __slots__ = ("_waiting",)

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        super().__init__(outlets)
        self._waiting: dict[int, ToOne] = {}
        """By outlet index, the route that holds the items for that outlet."""

    @property
    def pending(self) -> bool:
        return bool(self._waiting)

    def _wait(self, index: int, items: list[Any]) -> None:
        way = self._waiting.get(index)
        if way is None:
            way = self._waiting[index] = ToOne([self.outlets[index]])
        way._take(items)

    def _give(self) -> bool:
        moved = False
        for index, way in list(self._waiting.items()):
            moved = way._give() or moved
            if not way.pending:
                del self._waiting[index]
        return moved


class Partitioned(ByOutlet):
    """Sends each item to the outlet of its partition. The partition is computed once, when the
    item is taken from the bucket."""

    __slots__ = ("_edge", "_key", "_make_spread", "_outlet_of_partition", "_partition")

    MANY = 128
    """The number of items from which a loop that is generated for the edge is worth its while."""

    def __init__(
        self,
        outlets: Sequence[Outlet],
        *,
        outlet_of_partition: Sequence[int],
        key: Callable[[Any], Any] | None,
        partition: Callable[[Any], int],
        edge: str,
        make_spread: Callable[[], Spread] | None = None,
    ) -> None:
        super().__init__(outlets)
        self._make_spread = make_spread
        self._edge = edge
        self._outlet_of_partition = outlet_of_partition
        self._key = key
        self._partition = partition

    def _take(self, bucket: list[Any]) -> None:
        for index, items in self._sorted(bucket).items():
            self._wait(index, items)
        self.moved += count_of(bucket)
        bucket.clear()

    def _sorted(self, bucket: list[Any]) -> dict[int, list[Any]]:
        if len(bucket) >= self.MANY and self._make_spread is not None:
            by_place: list[list[Any]] = [[] for _ in self.outlets]
            by_partition = [by_place[place] for place in self._outlet_of_partition]
            self._make_spread()(bucket, by_partition)
            return {place: items for place, items in enumerate(by_place) if items}
        key, partition, outlet_of = self._key, self._partition, self._outlet_of_partition
        by_outlet: dict[int, list[Any]] = {}
        item = None
        try:
            for item in bucket:
                index = outlet_of[partition(item if key is None else key(item))]
                if index in by_outlet:
                    by_outlet[index].append(item)
                else:
                    by_outlet[index] = [item]
        except BaseException as error:
            raise RoutingFailed(self._edge, item, error) from error
        return by_outlet


class RoutingFailed(Exception):
    """Carries the error of a key function, a partitioner or a pickler, with the item and the edge.
    The engine turns it into JobFailed."""

    def __init__(self, edge: str, item: Any, error: BaseException) -> None:
        super().__init__(edge, item, error)
        self.edge = edge
        self.item = item
        self.error = error
