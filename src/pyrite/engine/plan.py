"""Execution plans: what each member is to run, decided on the coordinator. Pure: nothing is started
here.

Members are numbered. With one member everything below holds as well: it owns all partitions, and no
edge leaves it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from pyrite.bad_records import Handling
from pyrite.dag import DAG, Edge, EdgeSettings, Pattern
from pyrite.errors import InvalidDAG
from pyrite.partitioning import PARTITION_COUNT, default_partition_count
from pyrite.processors.dead_letters import handling_of
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep, WriteStep


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """An edge of the plan. `id` is its index among the edges of the DAG."""

    id: int
    source: str
    source_ordinal: int
    destination: str
    destination_ordinal: int
    settings: EdgeSettings
    is_distributed: bool
    """Whether items may leave the member: the edge is distributed, and there is more than one
    member."""
    tells_columns: bool = False
    """Whether the processors that it leads to must know the columns of batches, of which they get
    no rows, too."""

    @property
    def name(self) -> str:
        return edge_name(self.source, self.destination)


def edge_name(source: str, destination: str) -> str:
    """The name of an edge in messages and metrics."""
    return f"'{source} -> {destination}'"


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """A vertex, its edges in the order of their ordinals, and its processors per member."""

    name: str
    local_parallelism: int
    inbound: tuple[EdgePlan, ...]
    outbound: tuple[EdgePlan, ...]
    """With the edge for dead letters, if there is one, as the last."""
    handling: Handling | None = None
    """How errors of its processors are handled; None if they fail the job."""

    @property
    def emitting(self) -> tuple[EdgePlan, ...]:
        """The edges for what its processors emit."""
        return tuple(edge for edge in self.outbound if not edge.settings.for_dead_letters)

    @property
    def letters(self) -> tuple[EdgePlan, ...]:
        """The edge for dead letters, if there is one."""
        return tuple(edge for edge in self.outbound if edge.settings.for_dead_letters)


@dataclass(frozen=True, slots=True)
class Topology:
    """The plan of a DAG for a number of members. All its executions share it."""

    vertices: tuple[VertexPlan, ...]
    member_count: int
    partition_count: int = PARTITION_COUNT

    def with_vertex_after(self, name: str, vertex: VertexPlan, edge: EdgePlan) -> Topology:
        """A copy of the plan with another vertex behind the vertex of that name."""
        vertices = [
            replace(v, outbound=(*v.emitting, edge, *v.letters)) if v.name == name else v
            for v in self.vertices
        ]
        return replace(self, vertices=(*vertices, vertex))

    def parallelism_of(self, vertex: str) -> int:
        """How many processors of a vertex each member runs."""
        return next(each.local_parallelism for each in self.vertices if each.name == vertex)

    def member_of(self, partition: int) -> int:
        """The member that owns a partition, on distributed edges."""
        return partition % self.member_count

    def processors_of(self, local_parallelism: int) -> tuple[int, ...]:
        """By partition, the local index of the processor that owns it."""
        return _processors(self.partition_count, self.member_count, local_parallelism)

    def ways(self, edge: EdgePlan, member: int, *, ends_here: bool) -> Ways:
        """By partition, where a member sends its items over an edge. The edge may end in this
        member's section or not."""
        return _ways(
            self.partition_count,
            self.member_count,
            self.parallelism_of(edge.destination),
            member,
            edge.is_distributed,
            ends_here,
        )

    def processor_of(self, partition: int, local_parallelism: int) -> int:
        """The local index of the processor that has a partition, on whichever member it is.

        The same for local and distributed edges, so that both agree about the partitions that a
        member owns.
        """
        return partition // self.member_count % local_parallelism


class Ways(NamedTuple):
    """The outlets of one producer of a partitioned edge: first one for each processor here, then
    one for each processor elsewhere."""

    outlet_of_partition: tuple[int, ...]
    elsewhere: tuple[tuple[int, int], ...]
    """The member of each processor elsewhere, and a partition that it has."""


@lru_cache(maxsize=1024)
def _processors(partition_count: int, member_count: int, parallelism: int) -> tuple[int, ...]:
    topology = Topology((), member_count, partition_count)
    return tuple(topology.processor_of(n, parallelism) for n in range(partition_count))


@lru_cache(maxsize=1024)
def _ways(
    partition_count: int,
    member_count: int,
    parallelism: int,
    member: int,
    is_distributed: bool,
    ends_here: bool,
) -> Ways:
    topology = Topology((), member_count, partition_count)
    first: dict[tuple[int, int], int] = {}
    places: list[tuple[int, int] | int] = []
    for partition in range(partition_count):
        owner = topology.member_of(partition) if is_distributed else member
        processor = topology.processor_of(partition, parallelism)
        if ends_here and owner == member:
            places.append(processor)
        else:
            first.setdefault((owner, processor), partition)
            places.append((owner, processor))
    number = {place: i for i, place in enumerate(first, parallelism if ends_here else 0)}
    return Ways(
        tuple(place if isinstance(place, int) else number[place] for place in places),
        tuple((owner, partition) for (owner, _), partition in first.items()),
    )


def plan_topology(
    dag: DAG,
    *,
    member_count: int,
    default_parallelism: int,
    partition_count: int | None = None,
) -> Topology:
    """Validates a DAG and lays it out for a number of members. Without a `partition_count`, the
    number of partitions follows from the number of members."""
    dag.validate()
    _check_steps(dag)
    edges = {id(edge): _edge_plan(i, edge, member_count) for i, edge in enumerate(dag.edges)}
    vertices = tuple(
        VertexPlan(
            vertex.name,
            default_parallelism if vertex.local_parallelism == -1 else vertex.local_parallelism,
            tuple(edges[id(edge)] for edge in dag.inbound(vertex)),
            tuple(edges[id(edge)] for edge in dag.outbound(vertex)),
            handling_of(vertex),
        )
        for vertex in dag
    )
    return Topology(
        vertices, member_count, partition_count or default_partition_count(member_count)
    )


def choose_single_partitions(topology: Topology, choice: random.Random) -> dict[int, int]:
    """Chooses the one partition of each all-to-one edge for one execution. By edge id."""
    return {
        edge.id: choice.randrange(topology.partition_count)
        for vertex in topology.vertices
        for edge in vertex.outbound
        if edge.settings.pattern is Pattern.ALL_TO_ONE
    }


def isolated_targets(upstream: int, upstream_count: int, downstream_count: int) -> Sequence[int]:
    """Which processors downstream an upstream processor feeds over an isolated edge.

    >>> isolated_targets(1, 2, 4), isolated_targets(3, 4, 2), isolated_targets(1, 2, 2)
    ((1, 3), (1,), (1,))
    """
    if downstream_count >= upstream_count:
        return tuple(range(upstream, downstream_count, upstream_count))
    return (upstream % downstream_count,)


def _check_steps(dag: DAG) -> None:
    """Raises InvalidDAG if a source has an inbound edge, if a sink has an outbound edge, or if two
    sinks write to the same target."""
    targets: dict[str, tuple[str, bool]] = {}
    for vertex in dag.vertices:
        step = vertex.supplier.step if isinstance(vertex.supplier, StepSupplier) else None
        if isinstance(step, ReadStep) and dag.inbound(vertex):
            edge = dag.inbound(vertex)[0]
            raise InvalidDAG(
                f"vertex '{vertex.name}' is a source and takes no items, but edge {edge.name} "
                "leads to it"
            )
        if not isinstance(step, WriteStep):
            continue
        outbound = [e for e in dag.outbound(vertex) if not e.settings.for_dead_letters]
        if outbound:
            edge = outbound[0]
            raise InvalidDAG(
                f"vertex '{vertex.name}' is a sink and emits nothing, but edge {edge.name} leads "
                "from it"
            )
        target = step.target()
        if target is None:
            continue
        other, is_shared = targets.setdefault(target, (vertex.name, step.shares_target()))
        if other != vertex.name and not (is_shared and step.shares_target()):
            raise InvalidDAG(
                f"vertices '{other}' and '{vertex.name}' both write to {target}; give each its own"
            )


def _edge_plan(id: int, edge: Edge, member_count: int) -> EdgePlan:
    return EdgePlan(
        id,
        edge.source.name,
        edge.source_ordinal,
        edge.destination.name,
        edge.destination_ordinal,
        edge.settings,
        edge.settings.distributed and member_count > 1,
        edge.settings.columns is not None and _is_columnar(edge.destination.supplier),
    )


def _is_columnar(supplier: object) -> bool:
    return isinstance(supplier, StepSupplier) and supplier.step.columnar
