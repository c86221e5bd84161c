"""Collects the items of a partitioned edge into packets, each with items of one partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import Route
from pyrite.exchange.packing import OpenPacket
from pyrite.exchange.spreading import write_spread, write_spread_pairs
from pyrite.spark.packets import BATCH_BYTES, FULL_PACKET_BYTES, PacketWriter
from pyrite.weights import bytes_of, count_of


class PartitionPackets(Route):
    """A route with one list of items for each partition. It pickles all lists when they hold enough
    items together.

    As long as all items are pairs, each partition has two lists, one for each half of the pairs. A
    packet has several such pickles, so that packets are large even with many partitions, although
    few items are held at a time.
    """

    __slots__ = (
        "_edge",
        "_held",
        "_held_bytes",
        "_lists",
        "_open",
        "_owners",
        "_pickled",
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
        """By partition, the member that owns it."""
        self._lists: list[list[Any]] = [[] for _ in owners]
        self._seconds: list[list[Any]] | None = [[] for _ in owners]
        self._held = 0
        self._held_bytes = 0
        """The bytes of the batches that it holds."""
        self._open = [OpenPacket() for _ in owners]
        self._pickled = 0
        """The total size of the open packets."""
        writer.routes += 1

    def drain(self, bucket: list[Any]) -> bool:
        count, size = len(bucket), bytes_of(bucket)
        self.moved += count_of(bucket)
        if self._seconds is not None:
            others = self._spread_pairs(bucket, self._lists, self._seconds)
            if others:
                self._pack()
                self._seconds = None
                self._spread(others, self._lists)
        else:
            self._spread(bucket, self._lists)
        bucket.clear()
        self._held += count
        self._held_bytes += size
        if (
            self._held >= self._writer.items_held_for(len(self._owners))
            or self._held_bytes >= BATCH_BYTES
        ):
            self._pack()
        return count > 0

    @property
    def pending(self) -> bool:
        return self._writer.is_full

    def finish(self) -> None:
        self._pack()
        self.close_packets()

    def close_packets(self) -> None:
        """Closes all open packets."""
        for partition, packet in enumerate(self._open):
            if packet.size:
                self._close_packet(partition)

    def _pack(self) -> None:
        """Pickles the items of each partition."""
        lists, seconds, writer, edge = self._lists, self._seconds, self._writer, self._edge
        for partition, items in enumerate(lists):
            if not items:
                continue
            if seconds is None:
                packed = writer.pack(items, edge)
            else:
                packed = writer.pack_pairs(items, seconds[partition], edge)
                seconds[partition] = []
            lists[partition] = []
            self._pickled += len(packed)
            if self._open[partition].add(packed) >= FULL_PACKET_BYTES:
                self._close_packet(partition)
        self._held = self._held_bytes = 0
        if self._pickled >= writer.open_bytes_held():
            self.close_packets()

    def _close_packet(self, partition: int) -> None:
        packet, self._open[partition] = self._open[partition], OpenPacket()
        self._pickled -= packet.size
        member = self._owners[partition]
        self._writer.add(member, self._rank, self._edge.id, partition, packet.closed())
