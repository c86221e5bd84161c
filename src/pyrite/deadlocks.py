"""Finds out, before a DAG runs, whether the priorities of its edges would deadlock it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyrite.errors import InvalidDAG

if TYPE_CHECKING:
    from pyrite.dag import DAG, Edge, Vertex


def check_priorities(dag: DAG) -> None:
    """Raises InvalidDAG if a DAG deadlocks once there is more data than its queues hold."""
    ring = deadlock_in(dag)
    if ring is None:
        return
    edge = ring[0]
    early = _earlier_than(edge, dag)[0]
    needed, stopped = _needed_before(ring[-1], dag), _stopped_by(edge, dag)
    fork = next(vertex.name for vertex in dag.vertices if vertex in needed and vertex in stopped)
    through = (
        ""
        if len(ring) == 1
        else f", by way of edge {' and edge '.join(other.name for other in ring[1:])}"
    )
    raise InvalidDAG(
        f"edge {edge.name} (priority {edge.settings.priority}) would deadlock: vertex '{fork}' "
        f"feeds both it and edge {early.name} (priority {early.settings.priority}), which is "
        f"drained first{through}; call .buffered() on edge {edge.name}"
    )


def deadlock_in(dag: DAG) -> list[Edge] | None:
    """Edges that block each other in a ring once there is more data than their queues hold; None
    if there are none. To buffer one of them breaks the ring.

    A late edge has a higher priority number than another edge into the same vertex. It is not read
    until the earlier edge has ended, so its queue fills up and blocks the vertices upstream of it.
    If the earlier edge needs one of these vertices in order to end, the job deadlocks. This happens
    where the branches of a fork meet again. Several late edges can also block each other in a ring.
    A buffered edge on the way prevents it, and so does a vertex that takes all its input before it
    emits anything.
    """
    late = [edge for edge in dag.edges if not edge.settings.buffered and _earlier_than(edge, dag)]
    stopped_by = {edge: _stopped_by(edge, dag) for edge in late}
    needed = {edge: _needed_before(edge, dag) for edge in late}
    waits_for = {
        edge: [other for other in late if not needed[edge].isdisjoint(stopped_by[other])]
        for edge in late
    }
    rings = (_ring_from(edge, waits_for) for edge in late)
    return next((ring for ring in rings if ring is not None), None)


def _needed_before(edge: Edge, dag: DAG) -> set[Vertex]:
    """The vertices that must have ended before a late edge is read."""
    return _upstream_of((early.source for early in _earlier_than(edge, dag)), dag)


def _earlier_than(edge: Edge, dag: DAG) -> list[Edge]:
    return [
        e for e in dag.inbound(edge.destination) if e.settings.priority < edge.settings.priority
    ]


def _stopped_by(edge: Edge, dag: DAG) -> set[Vertex]:
    """The vertices that cannot go on while `edge` is full."""
    stopped: set[Vertex] = set()
    waiting = [edge.source]
    while waiting:
        vertex = waiting.pop()
        if vertex in stopped:
            continue
        stopped.add(vertex)
        if not getattr(vertex.supplier, "absorbs_input", False):
            waiting.extend(e.source for e in dag.inbound(vertex) if not e.settings.buffered)
    return stopped


def _upstream_of(vertices: Iterable[Vertex], dag: DAG) -> set[Vertex]:
    """The vertices, and all vertices upstream of them."""
    found: set[Vertex] = set()
    waiting = list(vertices)
    while waiting:
        vertex = waiting.pop()
        if vertex not in found:
            found.add(vertex)
            waiting.extend(e.source for e in dag.inbound(vertex))
    return found


def _ring_from(edge: Edge, waits_for: dict[Edge, list[Edge]]) -> list[Edge] | None:
    """The shortest cycle of edges that wait for each other and starts at `edge`; None if there is
    none."""
    reached: dict[Edge, list[Edge]] = {}
    ways = [[edge]]
    for way in ways:  # grows while it is walked
        for other in waits_for[way[-1]]:
            if other is edge:
                return way
            if other not in reached:
                reached[other] = [*way, other]
                ways.append(reached[other])
    return None
