"""Fusion decides which vertices run together. Ready-made steps that local edges connect become a
single loop, without queues between them.

Fusion must not change results. Two vertices are fused only in two cases: each processor of the
first vertex sends only to the processor of the second vertex with the same index, or the result
does not depend on which processor of the second vertex gets an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyrite.dag import Pattern
from pyrite.engine.plan import EdgePlan, Topology, VertexPlan
from pyrite.partitioning import RowKey, partition_function
from pyrite.processors.columns.steps import BatchStep
from pyrite.processors.loops.chain import StepSupplier, chain_of
from pyrite.processors.loops.fused import Link, StepChain
from pyrite.processors.loops.loop import Guard
from pyrite.processors.loops.steps import Fold, ReadStep, Step, Transform, WriteStep
from pyrite.processors.split_sources import ReadSplits
from pyrite.processors.transforms import FlatMap


@dataclass(frozen=True)  # no slots, because all executions share what is cached
class Stretch:
    """One vertex, or several fused vertices. `chain` is None if the vertex has the user's own
    processors."""

    vertices: tuple[VertexPlan, ...]
    chain: StepChain | None

    @property
    def inbound(self) -> tuple[EdgePlan, ...]:
        return self.vertices[0].inbound

    @cached_property
    def outbound(self) -> tuple[EdgePlan, ...]:
        """The edges for what it emits, then those for the dead letters of its vertices."""
        return (*self.emitting, *self.letters)

    @cached_property
    def emitting(self) -> tuple[EdgePlan, ...]:
        return self.vertices[-1].emitting

    @cached_property
    def letters(self) -> tuple[EdgePlan, ...]:
        return tuple(edge for vertex in self.vertices for edge in vertex.letters)

    @property
    def local_parallelism(self) -> int:
        return self.vertices[0].local_parallelism

    @cached_property
    def label(self) -> str:
        return " + ".join(vertex.name for vertex in self.vertices)


def fuse(topology: Topology, suppliers: Mapping[str, Any]) -> tuple[Stretch, ...]:
    """Divides the vertices of a topology, or of a section, into stretches in topological order."""
    by_name = {vertex.name: vertex for vertex in topology.vertices}
    follower: dict[str, VertexPlan] = {}
    depths: dict[str, int] = {}
    for vertex in topology.vertices:
        if len(vertex.emitting) == 1:
            next_vertex = by_name.get(vertex.emitting[0].destination)
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


DEEPEST_LOOP = 7
"""The most flat maps in one loop. Each is two nested loops, and Python nests 20 blocks at most; a
step whose errors are handled needs up to five, in the innermost loop."""


def _nested_loops(supplier: Any) -> int:
    return 1 if isinstance(step_of(supplier), (FlatMap, ReadSplits)) else 0


def step_of(supplier: Any) -> Step | None:
    return supplier.step if isinstance(supplier, StepSupplier) else None


def _can_fuse(first: VertexPlan, second: VertexPlan, suppliers: Mapping[str, Any]) -> bool:
    a, b = step_of(suppliers[first.name]), step_of(suppliers[second.name])
    if a is None or b is None or isinstance(a, (Fold, WriteStep)) or isinstance(b, ReadStep):
        return False
    if a.columnar != b.columnar or _is_door(a, b):
        return False
    if len(second.inbound) != 1 or first.local_parallelism != second.local_parallelism:
        return False
    edge = second.inbound[0]
    if edge.is_distributed:
        return False
    if first.local_parallelism == 1 or edge.settings.pattern is Pattern.ISOLATED:
        return True
    return edge.settings.pattern is Pattern.UNICAST and _suits_any_processor(b)


def _is_door(a: Step, b: Step) -> bool:
    """Whether items that are not batches travel between two columnar steps."""
    return (isinstance(a, BatchStep) and a.gives_items) or (
        isinstance(b, BatchStep) and b.takes_items
    )


def _suits_any_processor(step: Step) -> bool:
    if isinstance(step, BatchStep):
        return step.suits_any_processor
    return isinstance(step, Transform)


def _chain(
    run: list[VertexPlan], suppliers: Mapping[str, Any], topology: Topology
) -> StepChain | None:
    links = []
    for position, vertex in enumerate(run):
        step = step_of(suppliers[vertex.name])
        if step is None:
            return None
        guard = _guard(vertex.inbound[0], topology) if position else None
        links.append(Link(vertex.name, step, guard, vertex.handling))
    return chain_of(links, emits=bool(run[-1].emitting))


def _guard(edge: EdgePlan, topology: Topology) -> Guard | None:
    """The key check of a fused partitioned edge. The edge has only one receiver, but it must refuse
    the same keys as an edge that is not fused."""
    settings = edge.settings
    if settings.pattern is not Pattern.PARTITIONED:
        return None
    if settings.columns is not None:
        key = RowKey(settings.columns, edge.name, settings.nulls)
        return Guard(edge.name, None, key.check, always=True, columns=settings.columns)
    check = partition_function(
        topology.partition_count, partitioner=settings.partitioner, edge=edge.name
    )
    return Guard(edge.name, settings.key, check, always=settings.partitioner is not None)
