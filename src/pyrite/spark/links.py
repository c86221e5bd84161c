"""Connects a section in a task to Spark's exchanges: outlets fill packets, and inlets read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrite.dag import Pattern
from pyrite.engine.ends import Packet
from pyrite.engine.plan import EdgePlan, Topology
from pyrite.engine.queues import DONE, Done
from pyrite.spark.packets import PacketOutlet, PacketReader, PacketWriter
from pyrite.spark.partition_packets import PartitionPackets


class ExchangeLinks:
    """Connects the section that runs in a task to the exchanges before and after it. `ranks` has
    the rank of every edge of the job."""

    def __init__(
        self,
        reader: PacketReader,
        writer: PacketWriter,
        ranks: Mapping[int, int],
        topology: Topology,
        member: int,
    ) -> None:
        self._topology = topology
        self._member = member
        self._reader = reader
        self._writer = writer
        self._ranks = ranks

    def outlet(
        self, edge: EdgePlan, processor: int, member: int, partition: int | None
    ) -> PacketOutlet:
        members: Sequence[int] = (member,)
        if edge.settings.pattern is Pattern.BROADCAST and edge.is_distributed:
            # All members get the same packets. The outlet for member 0 sends them to all members,
            # so that items are pickled only once; the other outlets do nothing.
            members = range(self._topology.member_count) if member == 0 else ()
        return self._writer.outlet(edge, self._ranks[edge.id], members, partition)

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> PartitionPackets:
        topology = self._topology
        owners = [
            topology.member_of(n) if edge.is_distributed else self._member
            for n in range(topology.partition_count)
        ]
        return PartitionPackets(self._writer, edge, self._ranks[edge.id], partition, owners)

    def spread(self, edge: EdgePlan, partition: Callable[[Any], int]) -> None:
        return None

    def done(self, edge: EdgePlan, processor: int) -> None:
        """Does nothing: an exchange ends when all tasks of the section before it have ended."""

    def inlet(self, edge: EdgePlan) -> ExchangeInlet:
        return ExchangeInlet(self._reader, edge.id)


class ExchangeInlet:
    """Reads the packets of one edge. It returns a packet only if that is the next row of the task's
    input, so packets are never buffered in memory."""

    __slots__ = ("_edge", "_reader")

    def __init__(self, reader: PacketReader, edge: int) -> None:
        self._reader = reader
        self._edge = edge

    def poll(self) -> Packet | Done | None:
        row = self._reader.head()
        if row is not None and row.edge == self._edge:
            return Packet(*self._reader.take())
        return DONE if self._reader.has_ended(self._edge) else None
