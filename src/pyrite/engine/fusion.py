"""Fusion: which vertices run as one. Chains of ready-made steps over local edges become a single
loop, without queues between.

Fusing must not show: a vertex is fused to the one before it only where each processor of the first
would feed the one processor of the second with the same index anyway, or where nobody can tell
which processor of the second got an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrite.dag import Pattern
from pyrite.engine.plan import EdgePlan, Topology, VertexPlan
from pyrite.partitioning import partition_function
from pyrite.processors.chain import Chain, Link, StepSupplier
from pyrite.processors.loop import Guard
from pyrite.processors.steps import Fold, Sink, Source, Step, Transform
from pyrite.processors.transforms import FlatMap


@dataclass(frozen=True, slots=True)
class Stretch:
    """One vertex, or several that run as one. Its `chain` is None if the vertex has processors of
    its own making."""

    vertices: tuple[VertexPlan, ...]
    chain: Chain | None

    @property
    def inbound(self) -> tuple[EdgePlan, ...]:
        return self.vertices[0].inbound

    @property
    def outbound(self) -> tuple[EdgePlan, ...]:
        return self.vertices[-1].outbound

    @property
    def local_parallelism(self) -> int:
        return self.vertices[0].local_parallelism

    @property
    def label(self) -> str:
        return " + ".join(vertex.name for vertex in self.vertices)


def fuse(topology: Topology, suppliers: Mapping[str, Any]) -> tuple[Stretch, ...]:
    """Divides the vertices of a topology, or of a part of one, into stretches, in topological
    order."""
    by_name = {vertex.name: vertex for vertex in topology.vertices}
    follower: dict[str, VertexPlan] = {}
    depths: dict[str, int] = {}
    for vertex in topology.vertices:
        if len(vertex.outbound) == 1:
            next_vertex = by_name.get(vertex.outbound[0].destination)
            if next_vertex is not None and _can_fuse(vertex, next_vertex, suppliers):
                depth = depths.get(vertex.name, _nested_loops(suppliers[vertex.name]))
                depth += _nested_loops(suppliers[next_vertex.name])
                if depth <= DEEPEST_LOOP:
                    follower[vertex.name] = next_vertex
                    depths[next_vertex.name] = depth
    followers = {vertex.name for vertex in follower.values()}
    stretches = []
    for vertex in topology.vertices:
        if vertex.name not in followers:
            run = [vertex]
            while run[-1].name in follower:
                run.append(follower[run[-1].name])
            stretches.append(Stretch(tuple(run), _chain(run, suppliers, topology)))
    return tuple(stretches)


DEEPEST_LOOP = 8
"""How many flat maps may stand in one loop: Python compiles only so many loops inside one
another."""


def _nested_loops(supplier: Any) -> int:
    return 1 if isinstance(step_of(supplier), FlatMap) else 0


def step_of(supplier: Any) -> Step | None:
    return supplier.step if isinstance(supplier, StepSupplier) else None


def _can_fuse(first: VertexPlan, second: VertexPlan, suppliers: Mapping[str, Any]) -> bool:
    a, b = step_of(suppliers[first.name]), step_of(suppliers[second.name])
    if a is None or b is None or isinstance(a, (Fold, Sink)) or isinstance(b, Source):
        return False
    if len(second.inbound) != 1 or first.local_parallelism != second.local_parallelism:
        return False
    edge = second.inbound[0]
    if edge.is_distributed:
        return False
    if first.local_parallelism == 1 or edge.settings.pattern is Pattern.ISOLATED:
        return True
    return edge.settings.pattern is Pattern.UNICAST and isinstance(b, Transform)


def _chain(run: list[VertexPlan], suppliers: Mapping[str, Any], topology: Topology) -> Chain | None:
    links = []
    for position, vertex in enumerate(run):
        step = step_of(suppliers[vertex.name])
        if step is None:
            return None
        links.append(
            Link(vertex.name, step, _guard(vertex.inbound[0], topology) if position else None)
        )
    return Chain(links, emits=bool(run[-1].outbound))


def _guard(edge: EdgePlan, topology: Topology) -> Guard | None:
    """A fused partitioned edge has one place to go to, but a bad key on it is as bad as on any."""
    settings = edge.settings
    if settings.pattern is not Pattern.PARTITIONED:
        return None
    check = partition_function(
        topology.partition_count, partitioner=settings.partitioner, edge=edge.name
    )
    return Guard(edge.name, settings.key, check, always=settings.partitioner is not None)
