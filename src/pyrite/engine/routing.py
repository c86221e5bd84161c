"""Routing: how one producer spreads the items of an edge over the outlets it has, for each forwarding pattern.

A route takes items from the front of a bucket and puts them into outlets. What no outlet has room for it keeps, in the bucket or in
itself; it says so by `pending`. It never drops an item and never gives one out twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrite.engine.ends import Outlet


class Route:
    """The way of one producer's items over one edge."""

    __slots__ = ("moved", "outlets")

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        self.outlets = list(outlets)
        self.moved = 0
        """How many items have been taken from the bucket for good."""

    def drain(self, bucket: list[Any]) -> bool:
        """Moves what can be moved out of the bucket. Returns whether anything moved."""
        raise NotImplementedError

    def pending(self, bucket: list[Any]) -> bool:
        """Whether anything is still on its way."""
        return bool(bucket)

    def finish(self) -> None:
        """Puts the done marker into every outlet."""
        for outlet in self.outlets:
            outlet.finish()


class ToOne(Route):
    """There is one outlet, and everything goes there."""

    __slots__ = ("_outlet",)

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        super().__init__(outlets)
        (self._outlet,) = outlets

    def drain(self, bucket: list[Any]) -> bool:
        taken = self._outlet.offer(bucket.copy())
        if taken == len(bucket):
            bucket.clear()
        elif taken:
            del bucket[:taken]
        self.moved += taken
        return taken > 0


class Unicast(Route):
    """Item by item in turn, passing over outlets that are full."""

    __slots__ = ("_turn",)

    def __init__(self, outlets: Sequence[Outlet], *, first: int = 0) -> None:
        super().__init__(outlets)
        self._turn = first % len(self.outlets)

    def drain(self, bucket: list[Any]) -> bool:
        outlets, count, turn = self.outlets, len(bucket), self._turn
        rooms = [outlet.room() for outlet in outlets]
        if min(rooms) >= -(-count // len(outlets)):  # each has room for its share
            for i in range(len(outlets)):
                share = bucket[i :: len(outlets)]
                if share:
                    outlets[(turn + i) % len(outlets)].offer(share)
            self._turn = (turn + count) % len(outlets)
            self.moved += count
            bucket.clear()
            return count > 0
        return self._drain_one_by_one(bucket, rooms)

    def _drain_one_by_one(self, bucket: list[Any], rooms: list[int]) -> bool:
        outlets, turn = self.outlets, self._turn
        shares: list[list[Any]] = [[] for _ in outlets]
        taken = 0
        for item in bucket:
            for _ in outlets:
                if rooms[turn] > 0:
                    break
                turn = (turn + 1) % len(outlets)
            else:
                break
            shares[turn].append(item)
            rooms[turn] -= 1
            taken += 1
            turn = (turn + 1) % len(outlets)
        for outlet, share in zip(outlets, shares):
            if share:
                outlet.offer(share)
        self._turn = turn
        self.moved += taken
        del bucket[:taken]
        return taken > 0


class Broadcast(Route):
    """Every item to every outlet. Each outlet gets on at its own pace; an item stays until the last has taken it."""

    __slots__ = ("_given",)

    def __init__(self, outlets: Sequence[Outlet]) -> None:
        super().__init__(outlets)
        self._given = [0] * len(self.outlets)

    def drain(self, bucket: list[Any]) -> bool:
        given, count = self._given, len(bucket)
        moved = False
        for i, outlet in enumerate(self.outlets):
            if given[i] < count:
                taken = outlet.offer(bucket[given[i] :])
                given[i] += taken
                moved = moved or taken > 0
        everyone_has = min(given)
        if everyone_has:
            del bucket[:everyone_has]
            self.moved += everyone_has
            self._given = [number - everyone_has for number in given]
        return moved


class Partitioned(Route):
    """Each item to the outlet of its partition. The partition is computed once, when the item is taken from the bucket."""

    __slots__ = ("_edge", "_key", "_outlet_of_partition", "_partition", "_waiting")

    def __init__(
        self,
        outlets: Sequence[Outlet],
        *,
        outlet_of_partition: Sequence[int],
        key: Callable[[Any], Any] | None,
        partition: Callable[[Any], int],
        edge: str,
    ) -> None:
        super().__init__(outlets)
        self._edge = edge
        self._outlet_of_partition = outlet_of_partition
        self._key = key
        self._partition = partition
        self._waiting: dict[int, list[Any]] = {}

    def drain(self, bucket: list[Any]) -> bool:
        waiting = self._waiting
        moved = bool(bucket)
        if moved:
            self._sort(bucket)
        for index in list(waiting):
            items = waiting[index]
            taken = self.outlets[index].offer(items)
            if taken:
                moved = True
                if taken == len(items):
                    del waiting[index]
                else:
                    waiting[index] = items[taken:]
        return moved

    def pending(self, bucket: list[Any]) -> bool:
        return bool(bucket or self._waiting)

    def _sort(self, bucket: list[Any]) -> None:
        key, partition, outlet_of, waiting = self._key, self._partition, self._outlet_of_partition, self._waiting
        item = None
        try:
            for item in bucket:
                index = outlet_of[partition(item if key is None else key(item))]
                if index in waiting:
                    waiting[index].append(item)
                else:
                    waiting[index] = [item]
        except BaseException as error:
            raise RoutingFailed(self._edge, item, error) from error
        self.moved += len(bucket)
        bucket.clear()


class RoutingFailed(Exception):
    """A key function or a partitioner raised, for this item. Never leaves the engine."""

    def __init__(self, edge: str, item: Any, error: BaseException) -> None:
        super().__init__(edge, item, error)
        self.edge = edge
        self.item = item
        self.error = error
