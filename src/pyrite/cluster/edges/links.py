"""The links between one member and the others, for one execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyrite.cluster.edges.receiving import Arrivals, MemberInlet
from pyrite.cluster.edges.sending import SenderTasklet, To
from pyrite.engine.failure import Halt
from pyrite.engine.plan import EdgePlan, Topology
from pyrite.engine.queues import SpscQueue
from pyrite.engine.routing import Spread
from pyrite.exchange.spreading import spread_when_needed


class MemberLinks:
    """The links of one member. `peers` has the other members, by their numbers in this execution.
    `arrivals` has what they sent before."""

    def __init__(
        self,
        execution: bytes,
        topology: Topology,
        peers: Mapping[int, To],
        arrivals: Arrivals,
        halt: Halt,
    ) -> None:
        self._topology = topology
        self._arrivals = arrivals
        self._inputs: dict[tuple[int, int, int, int | None], SpscQueue] = {}
        self._parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
        self._peer_count = len(peers)
        self._senders = {
            (edge.id, member): SenderTasklet(
                execution, edge, to, producers=vertex.local_parallelism, halt=halt
            )
            for vertex in topology.vertices
            for edge in vertex.outbound
            if edge.is_distributed
            for member, to in peers.items()
        }

    @property
    def tasklets(self) -> list[SenderTasklet]:
        return list(self._senders.values())

    def acked(self, member: int, edge: int, limit: int) -> None:
        """A member has acknowledged data: the sender of the edge may send up to the limit."""
        sender = self._senders.get((edge, member))
        if sender is not None:
            sender.limit.acked(limit)

    def outlet(
        self, edge: EdgePlan, processor: int, member: int, partition: int | None
    ) -> SpscQueue:
        """The queue for a partition. All partitions of the same processor on the other member share
        one, because their items take the same way."""
        target = (
            None
            if partition is None
            else self._topology.processor_of(partition, self._parallelism[edge.destination])
        )
        key = (edge.id, processor, member, target)
        if key not in self._inputs:
            self._inputs[key] = self._senders[edge.id, member].input(partition)
        return self._inputs[key]

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> None:
        return None

    def spread(
        self, edge: EdgePlan, partition: Callable[[Any], int]
    ) -> Callable[[], Spread] | None:
        return spread_when_needed(edge, partition, self._topology.partition_count)

    def done(self, edge: EdgePlan, processor: int) -> None:
        for (edge_id, _), sender in self._senders.items():
            if edge_id == edge.id:
                sender.finished(processor)

    def inlet(self, edge: EdgePlan) -> MemberInlet:
        arrivals = self._arrivals.edge(edge.id)
        arrivals.use_multiplier(edge.settings.receive_window_multiplier)
        return MemberInlet(arrivals, senders=self._peer_count)
