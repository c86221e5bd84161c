"""Links between members in one process. They use lists where a cluster uses sockets."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from pyrite.engine.ends import Packet
from pyrite.engine.plan import EdgePlan, Topology
from pyrite.engine.queues import DONE, Done

ROOM = 5
"""So few that senders sometimes find no room."""


class LoopbackLinks:
    def __init__(self, member: int, mesh: list[LoopbackLinks], topology: Topology) -> None:
        self._member = member
        self._mesh = mesh
        self._parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
        self.arrived: defaultdict[int, deque[Packet]] = defaultdict(deque)
        self.done_senders: defaultdict[int, int] = defaultdict(int)

    @staticmethod
    def mesh(member_count: int, topology: Topology) -> list[LoopbackLinks]:
        mesh: list[LoopbackLinks] = []
        mesh.extend(LoopbackLinks(member, mesh, topology) for member in range(member_count))
        return mesh

    def outlet(self, edge: EdgePlan, processor: int, member: int, partition: int | None) -> _Outlet:
        return _Outlet(self._mesh[member].arrived[edge.id], partition)

    def partitioned_route(self, edge: EdgePlan, processor: int, partition: Any) -> None:
        return None

    def spread(self, edge: EdgePlan, partition: Any) -> None:
        return None

    def done(self, edge: EdgePlan, processor: int) -> None:
        for links in self._mesh:
            if links is not self:
                links.done_senders[edge.id] += 1

    def inlet(self, edge: EdgePlan) -> _Inlet:
        return _Inlet(self, edge.id, (len(self._mesh) - 1) * self._parallelism[edge.source])


class _Outlet:
    def __init__(self, arrived: deque[Packet], partition: int | None) -> None:
        self._arrived = arrived
        self._partition = partition

    def room(self) -> int:
        return ROOM - len(self._arrived)

    def offer(self, items: list[Any]) -> int:
        taken = items[: max(0, self.room())]
        if taken:
            self._arrived.append(Packet(self._partition, taken))
        return len(taken)

    def finish(self) -> None:
        pass


class _Inlet:
    def __init__(self, links: LoopbackLinks, edge: int, senders: int) -> None:
        self._links = links
        self._edge = edge
        self._senders = senders

    def poll(self) -> Packet | Done | None:
        done = (
            self._links.done_senders[self._edge] == self._senders
        )  # read before the queue: what was sent before is in it
        if self._links.arrived[self._edge]:
            return self._links.arrived[self._edge].popleft()
        return DONE if done else None
