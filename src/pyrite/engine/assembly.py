"""Builds the queues, routes and tasklets of one member, as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from pyrite.boxes import Outbox
from pyrite.dag import Pattern
from pyrite.engine.ends import Links, Outlet
from pyrite.engine.failure import Halt
from pyrite.engine.fusion import Stretch
from pyrite.engine.packet_tasklet import PacketTasklet
from pyrite.engine.plan import EdgePlan, Topology, isolated_targets
from pyrite.engine.queues import UNBOUNDED, SpscQueue
from pyrite.engine.routing import Broadcast, Partitioned, Route, ToOne, Unicast
from pyrite.engine.splitting import PartitionedRows
from pyrite.engine.tasklets import InboundEdge, ProcessorTasklet, ReceiverTasklet
from pyrite.partitioning import RowKey, partition_function
from pyrite.processor import Processor

WarnSlow = Callable[[str, float], None]


class Assembly:
    """Builds the tasklets of one member. Call `tasklets()` once."""

    def __init__(
        self,
        topology: Topology,
        stretches: Sequence[Stretch],
        *,
        member: int,
        single_partitions: Mapping[int, int],
        links: Links,
        halt: Halt,
        warn_slow: WarnSlow,
        grouped: Collection[int] = (),
    ) -> None:
        self._topology = topology
        self._stretches = stretches
        self._member = member
        self._single_partitions = single_partitions
        self._links = links
        self._halt = halt
        self._warn_slow = warn_slow
        self._grouped = grouped
        self._blocking: set[str] = set()
        """The first vertex of each stretch whose processors have their own threads."""
        self._parallelism = {v.name: s.local_parallelism for s in stretches for v in s.vertices}
        """By vertex, for the vertices that run here: those of the member, or of one section."""
        self._inbound: dict[int, list[list[SpscQueue]]] = {}
        """By edge id, the queues of each processor of the edge's destination."""

    def tasklets(
        self, processors: Mapping[str, Sequence[Processor]]
    ) -> tuple[list[ProcessorTasklet], list[ReceiverTasklet]]:
        """The tasklets of the processors. `processors` has them by the first vertex of their
        stretch."""
        self._blocking = {
            name for name, made in processors.items() if not all(each.cooperative for each in made)
        }
        by_stretch = []
        # Producers first, so that all queues exist before their consumers ask for them.
        for stretch in self._stretches:
            wired = [self._wire_out(stretch, index) for index in range(stretch.local_parallelism)]
            by_stretch.append((stretch, wired))
        receivers = [
            self._receiver(edge)
            for stretch in self._stretches
            if not self._is_fed_straight(stretch)
            for edge in stretch.inbound
            if self._comes_in(edge)
        ]
        tasklets = []
        for stretch, wired in by_stretch:
            made = processors[stretch.vertices[0].name]
            for index, (processor, (outbox, routes)) in enumerate(zip(made, wired)):
                processor.attach(outbox)
                tasklets.append(self._tasklet(stretch, processor, index, outbox, routes))
        return tasklets, receivers

    def _tasklet(
        self,
        stretch: Stretch,
        processor: Processor,
        index: int,
        outbox: Outbox,
        routes: list[Route],
    ) -> ProcessorTasklet:
        common: dict[str, Any] = {
            "vertex": stretch.vertices[-1].name,
            "label": stretch.label,
            "outbox": outbox,
            "routes": routes,
            "halt": self._halt,
            "warn_slow": self._warn_slow,
            "on_finish": [
                partial(self._links.done, edge, index)
                for edge in stretch.outbound
                if self._leads_out(edge)
            ],
        }
        if self._is_fed_straight(stretch):
            return PacketTasklet(
                processor,
                [(edge, self._links.inlet(edge)) for edge in stretch.inbound],
                by_partition=self._is_grouped(stretch),
                **common,
            )
        inbound = [InboundEdge(edge, self._queues_of(edge, index)) for edge in stretch.inbound]
        return ProcessorTasklet(processor, index=index, inbound=inbound, **common)

    def _is_fed_straight(self, stretch: Stretch) -> bool:
        """Whether the stretch has one processor and one inbound edge, or edges that are read
        partition by partition, which come from another section or member. Such a processor takes
        packets directly, without a queue.

        A processor with its own thread cannot: only one thread may read from the links.
        """
        return (
            stretch.local_parallelism == 1
            and stretch.vertices[0].name not in self._blocking
            and (len(stretch.inbound) == 1 or self._is_grouped(stretch))
            and all(edge.source not in self._parallelism for edge in stretch.inbound)
        )

    def _is_grouped(self, stretch: Stretch) -> bool:
        """Whether the stretch reads its edges partition by partition."""
        edges = stretch.inbound
        return bool(edges) and all(edge.id in self._grouped for edge in edges)

    def _wire_out(self, stretch: Stretch, index: int) -> tuple[Outbox, list[Route]]:
        outbox = Outbox(
            [edge.settings.high_water_mark for edge in stretch.emitting],
            stretch.vertices[-1].name,
            letters=len(stretch.letters),
        )
        return outbox, [self._route(edge, index) for edge in stretch.outbound]

    def _queues_of(self, edge: EdgePlan, index: int) -> list[SpscQueue]:
        return self._inbound[edge.id][index] if edge.id in self._inbound else []

    def _queue_to(self, edge: EdgePlan, processor: int) -> SpscQueue:
        """Adds a queue from one producer of an edge to a processor of this member."""
        queue = SpscQueue(UNBOUNDED if edge.settings.buffered else edge.settings.queue_size)
        if edge.id not in self._inbound:
            self._inbound[edge.id] = [[] for _ in range(self._parallelism[edge.destination])]
        self._inbound[edge.id][processor].append(queue)
        return queue

    def _queues_to_all(self, edge: EdgePlan) -> list[SpscQueue]:
        return [
            self._queue_to(edge, processor)
            for processor in range(self._parallelism[edge.destination])
        ]

    def _leads_out(self, edge: EdgePlan) -> bool:
        """Whether items of the edge may go to another member or to another section."""
        return edge.is_distributed or edge.destination not in self._parallelism

    def _comes_in(self, edge: EdgePlan) -> bool:
        return edge.is_distributed or edge.source not in self._parallelism

    def _reaches_over_links(self, edge: EdgePlan) -> list[int]:
        """The members that the edge sends items to over links."""
        ends_here = edge.destination in self._parallelism
        if not edge.is_distributed:
            return [] if ends_here else [self._member]
        return [
            member
            for member in range(self._topology.member_count)
            if not (ends_here and member == self._member)
        ]

    def _route(self, edge: EdgePlan, index: int) -> Route:
        """The route by which processor `index` of the source sends items over the edge."""
        pattern = edge.settings.pattern
        if pattern is Pattern.PARTITIONED:
            return self._partitioned(edge, index)
        if pattern is Pattern.ALL_TO_ONE:
            return ToOne([self._target_of(edge, index, self._single_partitions[edge.id])])
        if pattern is Pattern.ISOLATED:
            return self._isolated(edge, index)
        outlets: list[Outlet] = (
            [*self._queues_to_all(edge)] if edge.destination in self._parallelism else []
        )
        outlets += [
            self._links.outlet(edge, index, member, None)
            for member in self._reaches_over_links(edge)
        ]
        return (
            Broadcast(outlets)
            if pattern is Pattern.BROADCAST
            else _unicast(outlets, first=self._member + index)
        )

    def _isolated(self, edge: EdgePlan, index: int) -> Route:
        # The sender's index travels in the place of the partition.
        if edge.destination not in self._parallelism:
            return ToOne([self._links.outlet(edge, index, self._member, index)])
        targets = isolated_targets(
            index, self._parallelism[edge.source], self._parallelism[edge.destination]
        )
        return _unicast([self._queue_to(edge, target) for target in targets], first=0)

    def _target_of(self, edge: EdgePlan, index: int, partition: int) -> Outlet:
        if self._is_here(edge, partition):
            return self._queue_to(edge, self._processor_of(edge, partition))
        return self._links.outlet(edge, index, self._owner_of(edge, partition), partition)

    def _partitioned(self, edge: EdgePlan, index: int) -> Route:
        topology, settings = self._topology, edge.settings
        if settings.columns is not None:
            outlets, outlet_of_partition = self._ways(edge, index)
            key = RowKey(settings.columns, edge.name, settings.nulls)
            return PartitionedRows(
                outlets,
                outlet_of_partition=outlet_of_partition,
                key=key,
                tells_columns=edge.tells_columns,
            )
        partition_of = partition_function(
            topology.partition_count, partitioner=settings.partitioner, edge=edge.name
        )
        if edge.destination not in self._parallelism:
            route = self._links.partitioned_route(edge, index, partition_of)
            if route is not None:
                return route
        outlets, outlet_of_partition = self._ways(edge, index)
        return Partitioned(
            outlets,
            outlet_of_partition=outlet_of_partition,
            key=settings.key,
            partition=partition_of,
            edge=edge.name,
            make_spread=self._links.spread(edge, partition_of),
        )

    def _ways(self, edge: EdgePlan, index: int) -> tuple[list[Outlet], Sequence[int]]:
        """An outlet for each processor that an edge leads to; and by partition, which it is."""
        ends_here = edge.destination in self._parallelism
        ways = self._topology.ways(edge, self._member, ends_here=ends_here)
        outlets: list[Outlet] = [*self._queues_to_all(edge)] if ends_here else []
        outlets += [
            self._links.outlet(edge, index, member, partition)
            for member, partition in ways.elsewhere
        ]
        return outlets, ways.outlet_of_partition

    def _receiver(self, edge: EdgePlan) -> ReceiverTasklet:
        queues = self._queues_to_all(edge)
        partition_routes: list[Route] = []
        route_of_partition: Sequence[int] = ()
        if edge.settings.pattern in (Pattern.PARTITIONED, Pattern.ALL_TO_ONE):
            partition_routes = [ToOne([queue]) for queue in queues]
            route_of_partition = self._topology.processors_of(len(queues))
        elif edge.settings.pattern is Pattern.ISOLATED:
            senders = range(self._topology.parallelism_of(edge.source))
            targets = [isolated_targets(sender, len(senders), len(queues)) for sender in senders]
            partition_routes = [_unicast([queues[t] for t in each], first=0) for each in targets]
            route_of_partition = senders
        route: Route = (
            _unicast(queues, first=0)
            if edge.settings.pattern is Pattern.UNICAST
            else Broadcast(queues)
        )
        return ReceiverTasklet(
            edge,
            self._links.inlet(edge),
            route=route,
            partition_routes=partition_routes,
            route_of_partition=route_of_partition,
            halt=self._halt,
        )

    def _owner_of(self, edge: EdgePlan, partition: int) -> int:
        return self._topology.member_of(partition) if edge.is_distributed else self._member

    def _is_here(self, edge: EdgePlan, partition: int) -> bool:
        return (
            edge.destination in self._parallelism
            and self._owner_of(edge, partition) == self._member
        )

    def _processor_of(self, edge: EdgePlan, partition: int) -> int:
        return self._topology.processor_of(partition, self._parallelism[edge.destination])


def _unicast(outlets: Sequence[Outlet], *, first: int) -> Route:
    return ToOne(outlets) if len(outlets) == 1 else Unicast(outlets, first=first)
