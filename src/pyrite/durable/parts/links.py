"""Connects the engine to the queues of a part: outlets fill the egress, and inlets give the packets
of the messages that the part was fed."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from pyrite.durable.parts.egress import Egress
from pyrite.engine.ends import Packet
from pyrite.engine.plan import EdgePlan, Topology
from pyrite.engine.queues import DONE, Done
from pyrite.engine.routing import Route, Spread
from pyrite.exchange.spreading import spread_when_needed


class QueueLinks:
    def __init__(self, topology: Topology, egress: Egress, member: int) -> None:
        self._topology = topology
        self._member = member
        self._egress = egress
        self._inlets: dict[int, QueueInlet] = {}

    def outlet(
        self, edge: EdgePlan, processor: int, member: int, partition: int | None
    ) -> QueueOutlet:
        return QueueOutlet(self._egress, edge, member, partition)

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> Route | None:
        return self._egress.way(edge).partitioned_route(partition, self._member)

    def spread(
        self, edge: EdgePlan, partition: Callable[[Any], int]
    ) -> Callable[[], Spread] | None:
        return spread_when_needed(edge, partition, self._topology.partition_count)

    def done(self, edge: EdgePlan, processor: int) -> None:
        """Does nothing: an edge ends with the sentinels that the part writes when it seals."""

    def inlet(self, edge: EdgePlan) -> QueueInlet:
        return self._inlets.setdefault(edge.id, QueueInlet())


class QueueOutlet:
    """Takes everything: how much waits for a commit is limited by when the part commits."""

    __slots__ = ("_add", "_member", "_partition")

    def __init__(self, egress: Egress, edge: EdgePlan, member: int, partition: int | None) -> None:
        self._add = egress.way(edge).add
        self._member = member
        self._partition = partition

    def offer(self, items: list[Any]) -> int:
        self._add(self._member, self._partition, items)
        return len(items)

    def room(self) -> int:
        return sys.maxsize

    def finish(self) -> None:
        pass


class QueueInlet:
    __slots__ = ("_packets", "has_ended")

    def __init__(self) -> None:
        self._packets: deque[Packet] = deque()
        self.has_ended = False

    def feed(self, packet: Packet) -> None:
        self._packets.append(packet)

    def poll(self) -> Packet | Done | None:
        if self._packets:
            return self._packets.popleft()
        return DONE if self.has_ended else None

    def __len__(self) -> int:
        return len(self._packets)
