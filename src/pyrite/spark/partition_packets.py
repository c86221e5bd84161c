"""The items of a partitioned edge on their way into packets, one packet per partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import Route
from pyrite.spark.packets import PacketWriter
from pyrite.spark.spreading import write_spread, write_spread_pairs


class PartitionPackets(Route):
    """A route that has a list for each partition, and makes packets of all of them when they hold
    enough together.

    As long as all items are pairs, it has two lists for each, for their halves.
    """

    __slots__ = (
        "_edge",
        "_held",
        "_lists",
        "_owners",
        "_rank",
        "_seconds",
        "_spread",
        "_spread_pairs",
        "_writer",
    )

    def __init__(
        self,
        writer: PacketWriter,
        edge: EdgePlan,
        rank: int,
        partition: Callable[[Any], int],
        owners: Sequence[int],
    ) -> None:
        super().__init__(())
        self._writer = writer
        self._edge = edge
        self._rank = rank
        self._spread = write_spread(edge, partition, len(owners))
        self._spread_pairs = write_spread_pairs(edge, partition, len(owners))
        self._owners = owners
        """By partition, the member that it belongs to."""
        self._lists: list[list[Any]] = [[] for _ in owners]
        self._seconds: list[list[Any]] | None = [[] for _ in owners]
        self._held = 0

    def drain(self, bucket: list[Any]) -> bool:
        count = len(bucket)
        if self._seconds is not None:
            others = self._spread_pairs(bucket, self._lists, self._seconds)
            if others:
                self._pack()
                self._seconds = None
                self._spread(others, self._lists)
        else:
            self._spread(bucket, self._lists)
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
        lists, seconds, writer, edge = self._lists, self._seconds, self._writer, self._edge
        for partition, items in enumerate(lists):
            if items:
                packed = (
                    writer.pack(items, edge)
                    if seconds is None
                    else writer.pack_pairs(items, seconds[partition], edge)
                )
                writer.add(self._owners[partition], self._rank, edge.id, partition, packed)
                lists[partition] = []
                if seconds is not None:
                    seconds[partition] = []
        self._held = 0
