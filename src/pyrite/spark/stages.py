"""Stages: which vertices of a DAG run together in a Spark task, and in which order what arrives
there must be read. Pure.

The stages of a job form a line. Stage k hands what it emits to the exchange after it, and an
exchange brings each row to the task of its member in the next stage. A row for a later stage is
handed on by those between; so nothing is ever computed twice, whatever the DAG looks like, and one
Spark action runs the whole job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.dag import Pattern
from pyrite.engine.fusion import step_of
from pyrite.engine.plan import EdgePlan, Topology, VertexPlan
from pyrite.functions import same
from pyrite.processors.steps import Fold


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage. `ranks` has the edges that come in over the exchange before it, by id, with the
    order in which they must be read."""

    index: int
    vertices: tuple[VertexPlan, ...]
    ranks: Mapping[int, int]
    grouped: frozenset[int]
    """The edges that lead to a grouping of their own key: read partition by partition, a
    partition's groups can be forgotten."""
    in_order: bool
    """Whether its tasks must make the same rows should Spark run one again, since these go over
    another exchange: where some of them were read already, and the rest is lost, other rows would
    mean items that are lost or there twice. So what arrives is put in order."""

    @property
    def label(self) -> str:
        return " + ".join(vertex.name for vertex in self.vertices)

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """What the rows of each task must be sorted by, if at all."""
        if self.in_order:
            return ("rank", "partition", "edge", "sender", "sequence")
        columns = ["rank"] if len(set(self.ranks.values())) > 1 else []
        return (*columns, "partition") if self.grouped else tuple(columns)


def plan_stages(topology: Topology, suppliers: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Divides the vertices of a topology into stages, first to last."""
    stage_of = _levels(topology)
    stages = []
    last = max(stage_of.values())
    for index in range(last + 1):
        vertices = tuple(vertex for vertex in topology.vertices if stage_of[vertex.name] == index)
        arriving = [
            edge
            for vertex in vertices
            for edge in vertex.inbound
            if stage_of.get(edge.source, -1) < index
        ]
        grouped = frozenset(
            edge.id
            for vertex in vertices
            for edge in arriving
            if _is_grouped(edge, vertex, suppliers)
        )
        ranks = _ranks(vertices, {edge.id for edge in arriving})
        stages.append(Stage(index, vertices, ranks, grouped, in_order=index < last))
    return tuple(stages)


@dataclass(frozen=True, slots=True)
class Skip:
    """The edges from one stage to one that is not the next."""

    source: int
    destination: int
    edges: frozenset[int]


def skips_of(stages: Sequence[Stage]) -> list[Skip]:
    """All edges that skip stages, by where they begin and end."""
    source_of = {e.id: stage.index for stage in stages for v in stage.vertices for e in v.outbound}
    skipping: dict[tuple[int, int], set[int]] = {}
    for stage in stages:
        for edge in stage.ranks:
            if edge in source_of and source_of[edge] + 1 < stage.index:  # else it is a DataFrame's
                skipping.setdefault((source_of[edge], stage.index), set()).add(edge)
    return [Skip(*between, frozenset(edges)) for between, edges in sorted(skipping.items())]


def _levels(topology: Topology) -> dict[str, int]:
    """The stage of each vertex: after the stages of all that it gets items from over a distributed
    edge, and not before those of the rest.

    Within these bounds as late as can be: a source stands with what it feeds over a local edge, so
    that its items need not travel.
    """
    level: dict[str, int] = {}
    for vertex in topology.vertices:
        upstream = [
            edge for edge in vertex.inbound if edge.source in level
        ]  # a DataFrame comes from nowhere in the DAG
        level[vertex.name] = max(
            (level[edge.source] + edge.is_distributed for edge in upstream), default=0
        )
    for vertex in reversed(topology.vertices):
        if vertex.outbound:
            level[vertex.name] = min(
                level[edge.destination] - edge.is_distributed for edge in vertex.outbound
            )
    first = min(level.values())
    return {name: number - first for name, number in level.items()}


def _ranks(vertices: tuple[VertexPlan, ...], arriving: set[int]) -> dict[int, int]:
    """For each arriving edge, how many others, one after another, must have ended before it may be
    read.

    An edge waits for those with a lower priority at its own vertex; and as what it brings flows on
    within the stage, it waits as well for those with a lower priority than the edge by which it
    flows into a vertex further down. What is waited for, if it comes from a vertex of the same
    stage, ends when all that arrives there has ended.
    """
    by_name = {vertex.name: vertex for vertex in vertices}
    edges = {edge.id: edge for vertex in vertices for edge in vertex.inbound if edge.id in arriving}

    def ending(edge: EdgePlan) -> set[int]:
        """The arriving edges that must have ended before this edge has."""
        if edge.id in arriving:
            return {edge.id}
        return {before for e in by_name[edge.source].inbound for before in ending(e)}

    def waits_for(edge: EdgePlan) -> set[int]:
        vertex = by_name[edge.destination]
        before = {
            i
            for e in vertex.inbound
            if e.settings.priority < edge.settings.priority
            for i in ending(e)
        }
        return before.union(*(waits_for(e) for e in vertex.outbound if e.destination in by_name))

    after = {id: waits_for(edge) - {id} for id, edge in edges.items()}
    ranks: dict[int, int] = {}

    def rank(id: int, above: frozenset[int]) -> int:
        # Edges that wait for one another in a ring are read side by side: a buffered edge is on the
        # way, or the DAG was refused.
        if id not in ranks:
            before = [rank(other, above | {id}) for other in after[id] if other not in above]
            if above:
                return 1 + max(before, default=-1)
            ranks[id] = 1 + max(before, default=-1)
        return ranks[id]

    for id in edges:
        rank(id, frozenset())
    return ranks


def _is_grouped(edge: EdgePlan, vertex: VertexPlan, suppliers: Mapping[str, Any]) -> bool:
    step = step_of(suppliers[vertex.name])
    return (
        edge.destination == vertex.name
        and len(vertex.inbound) == 1
        and vertex.local_parallelism == 1
        and edge.settings.pattern is Pattern.PARTITIONED
        and isinstance(step, Fold)
        and step.is_grouping
        and same(step.key_function(), edge.settings.key)
    )
