"""The items of a partitioned edge on their way into packets, one packet per partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import Route, RoutingFailed
from pyrite.spark.packets import PacketWriter, Row


class PartitionPackets(Route):
    """A route that has a list for each partition, and makes packets of all of them when they hold enough together."""

    __slots__ = ("_edge", "_held", "_lists", "_owner_of", "_partition", "_rank", "_writer")

    def __init__(
        self,
        writer: PacketWriter,
        edge: EdgePlan,
        rank: int,
        partition: Callable[[Any], int],
        owner_of: Callable[[int], int],
    ) -> None:
        super().__init__(())
        self._writer = writer
        self._edge = edge
        self._rank = rank
        self._partition = partition
        self._owner_of = owner_of
        self._lists: dict[int, list[Any]] = {}
        self._held = 0

    def drain(self, bucket: list[Any]) -> bool:
        key, partition, lists = self._edge.settings.key, self._partition, self._lists
        item = None
        try:
            for item in bucket:
                number = partition(item if key is None else key(item))
                if number in lists:
                    lists[number].append(item)
                else:
                    lists[number] = [item]
        except BaseException as error:
            raise RoutingFailed(self._edge.name, item, error) from error
        count = len(bucket)
        bucket.clear()
        self.moved += count
        self._held += count
        if self._held >= self._writer.items_held:
            self._pack()
        return count > 0

    @property
    def pending(self) -> bool:
        return False

    def finish(self) -> None:
        self._pack()

    def _pack(self) -> None:
        for partition, items in self._lists.items():
            packed = self._writer.pack(items, self._edge)
            self._writer.add_row(Row(self._owner_of(partition), self._rank, self._edge.id, partition, packed))
        self._lists = {}
        self._held = 0
