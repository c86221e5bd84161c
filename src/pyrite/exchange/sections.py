"""Plans sections: which vertices of a DAG run together in a Spark task, and in which order a task
must read its input. Pure code.

The sections of a job form a line with an exchange between each two. An exchange brings each row to
the task of its member in the next section. The sections between forward rows for later sections,
unless `job_frame` lets these rows bypass them. So no vertex is computed twice, whatever the DAG
looks like, and one Spark action runs the whole job. Spark runs each section as a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.dag import Pattern
from pyrite.engine.fusion import step_of
from pyrite.engine.plan import EdgePlan, Topology, VertexPlan
from pyrite.functions import same
from pyrite.processors.joins.hash_join import HashJoin
from pyrite.processors.loops.steps import Fold


@dataclass(frozen=True, slots=True)
class Section:
    """One section. `ranks` has the ids of the edges that arrive over the exchange before it. Edges
    with a lower rank must be read first."""

    index: int
    vertices: tuple[VertexPlan, ...]
    ranks: Mapping[int, int]
    grouped: frozenset[int]
    """The edges of vertices whose partitions do not depend on each other: groupings and joins by
    the keys of their edges. If these edges are read partition by partition, what is held of a
    partition can be freed when it has ended."""
    in_order: bool
    """Whether a task that Spark runs again must make the same rows. This holds for all sections
    before an exchange: after the loss of an executor, some tasks of the next section have read the
    rows of the first attempt, and others read those of the second. If these differed, items would
    be lost or duplicated. So the input is sorted."""

    @property
    def label(self) -> str:
        return " + ".join(vertex.name for vertex in self.vertices)

    @property
    def turns(self) -> Mapping[int, int]:
        """The ranks for a task that reads grouped edges partition by partition: all edges of such a
        vertex have the same rank. Within a partition, they are read in the order of their ids."""
        turns = dict(self.ranks)
        for vertex in self.vertices:
            ids = [edge.id for edge in vertex.inbound if edge.id in self.grouped]
            turns.update(dict.fromkeys(ids, max((turns[id] for id in ids), default=0)))
        return turns

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """The columns to sort the input of each task by. Empty if it need not be sorted."""
        if self.in_order:
            return ("rank", "partition", "edge", "sender", "sequence")
        columns = ["rank"] if len(set(self.turns.values())) > 1 else []
        if self.grouped:
            columns.append("partition")
        if any(len(v.inbound) > 1 and v.inbound[0].id in self.grouped for v in self.vertices):
            columns.append("edge")
        return tuple(columns)


def plan_sections(topology: Topology, suppliers: Mapping[str, Any]) -> tuple[Section, ...]:
    """Divides the vertices of a topology into sections, in the order in which they run."""
    section_of = _levels(topology)
    sections = []
    last = max(section_of.values())
    for index in range(last + 1):
        vertices = tuple(vertex for vertex in topology.vertices if section_of[vertex.name] == index)
        arriving = [
            edge
            for vertex in vertices
            for edge in vertex.inbound
            if section_of.get(edge.source, -1) < index
        ]
        ranks = _ranks(vertices, {edge.id for edge in arriving})
        grouped = frozenset(
            edge.id
            for vertex in vertices
            if _is_grouped(vertex, suppliers[vertex.name], ranks)
            for edge in vertex.inbound
        )
        sections.append(Section(index, vertices, ranks, grouped, in_order=index < last))
    return tuple(sections)


@dataclass(frozen=True, slots=True)
class Skip:
    """The edges from section `source` to section `destination`, which is not the next section."""

    source: int
    destination: int
    edges: frozenset[int]


def skips_of(sections: Sequence[Section]) -> list[Skip]:
    """All edges that skip sections, grouped by their source and destination section."""
    source_of = {
        e.id: section.index for section in sections for v in section.vertices for e in v.outbound
    }
    skipping: dict[tuple[int, int], set[int]] = {}
    for section in sections:
        for edge in section.ranks:
            # An edge without a source section reads a DataFrame.
            if edge in source_of and source_of[edge] + 1 < section.index:
                skipping.setdefault((source_of[edge], section.index), set()).add(edge)
    return [Skip(*between, frozenset(edges)) for between, edges in sorted(skipping.items())]


def _levels(topology: Topology) -> dict[str, int]:
    """The section of each vertex. It is later than the sections of all vertices that send to it
    over distributed edges, and not earlier than those that send to it over local edges.

    Within these bounds, a vertex gets the latest section. So a source is in the same section as the
    vertex that it feeds over a local edge, and its items need not cross an exchange.
    """
    level: dict[str, int] = {}
    for vertex in topology.vertices:
        # The edge of a DataFrame has no source vertex in the DAG.
        upstream = [edge for edge in vertex.inbound if edge.source in level]
        level[vertex.name] = max(
            (level[edge.source] + edge.is_distributed for edge in upstream), default=0
        )
    for vertex in reversed(topology.vertices):
        if vertex.emitting:
            level[vertex.name] = min(
                level[edge.destination] - edge.is_distributed for edge in vertex.emitting
            )
    for vertex in topology.vertices:  # a sink of dead letters follows those that send to it
        if vertex.inbound and all(edge.settings.for_dead_letters for edge in vertex.inbound):
            level[vertex.name] = max(level[edge.source] for edge in vertex.inbound)
    first = min(level.values())
    return {name: number - first for name, number in level.items()}


def _ranks(vertices: tuple[VertexPlan, ...], arriving: set[int]) -> dict[int, int]:
    """The rank of each arriving edge: the length of the longest chain of arriving edges that must
    end one after another before this edge may be read.

    At its destination vertex, an edge waits for the inbound edges with a lower priority number. Its
    items flow on through the section, so the edge also waits at each vertex further down: for the
    inbound edges there with a lower priority number than the edge that its items take. An edge
    inside the section ends when all arriving edges that feed it have ended.
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
        # Edges that wait for each other in a cycle are read at the same time. This cannot block:
        # there is a buffered edge in the cycle, or the DAG would have been refused.
        if id not in ranks:
            before = [rank(other, above | {id}) for other in after[id] if other not in above]
            if above:
                return 1 + max(before, default=-1)
            ranks[id] = 1 + max(before, default=-1)
        return ranks[id]

    for id in edges:
        rank(id, frozenset())
    return ranks


def _is_grouped(vertex: VertexPlan, supplier: Any, ranks: Mapping[int, int]) -> bool:
    """Whether the partitions of a vertex do not depend on each other, and all its edges can be read
    one partition after the other."""
    key = _partition_key(supplier)
    return (
        key is not None
        and vertex.local_parallelism == 1
        and bool(vertex.inbound)
        and all(
            edge.id in ranks
            and edge.settings.pattern is Pattern.PARTITIONED
            and edge.settings.columns is None
            and same(key, edge.settings.key)
            for edge in vertex.inbound
        )
        and _can_be_read_together(vertex.inbound, ranks)
    )


def _partition_key(supplier: Any) -> Any:
    """The function from an item to its key, if what a vertex does with an item depends only on
    items with the same key; otherwise None."""
    if isinstance(supplier, HashJoin):
        return supplier.partition_key()
    step = step_of(supplier)
    return step.key_function() if isinstance(step, Fold) and step.is_grouping else None


def _can_be_read_together(edges: Sequence[EdgePlan], ranks: Mapping[int, int]) -> bool:
    """Whether the edges of a vertex can have the same rank: no other edge has its turn between
    them, and the order of their ids is that of their priorities."""
    by_priority = sorted(edges, key=lambda edge: (edge.settings.priority, edge.id))
    priorities = {edge.settings.priority for edge in edges}
    spread = max(ranks[edge.id] for edge in edges) - min(ranks[edge.id] for edge in edges)
    return spread < len(priorities) and by_priority == sorted(edges, key=lambda edge: edge.id)
