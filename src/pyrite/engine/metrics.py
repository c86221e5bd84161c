"""Metrics of an execution: for each vertex and each of its processors, the items received and
emitted and the time spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from pyrite.engine.fusion import Stretch
from pyrite.engine.plan import Topology
from pyrite.engine.tasklets import ProcessorTasklet
from pyrite.processors.loops.fused import FusedProcessor


class ProcessorMetrics(TypedDict):
    received: int
    emitted: int
    skipped: int
    """Items that it could not process and left out, because of its `on_error`."""
    dead_letters: int
    """Items that it could not process and kept as dead letters."""
    queue_fill: int
    """Number of items in its inbound queues; a batch counts as its rows, here as everywhere."""
    busy_seconds: float
    """Time spent in its calls; for fused vertices, the time of all of them together."""


class VertexMetrics(ProcessorMetrics):
    processors: list[ProcessorMetrics]
    fused_with: list[str]
    """The vertices that run in the same loop as this one."""


def gather(
    topology: Topology, members: Sequence[tuple[Sequence[Stretch], Sequence[ProcessorTasklet]]]
) -> dict[str, VertexMetrics]:
    """The metrics of all vertices, in topological order."""
    by_vertex: dict[str, list[ProcessorMetrics]] = {vertex.name: [] for vertex in topology.vertices}
    fused: dict[str, list[str]] = {}
    for stretches, tasklets in members:
        for stretch, tasklet in zip(stretches, tasklets):
            names = [vertex.name for vertex in stretch.vertices]
            for position, name in enumerate(names):
                by_vertex[name].append(_of_processor(tasklet, position, len(names)))
                fused[name] = [other for other in names if other != name]
    return {name: _of_vertex(parts, fused.get(name, [])) for name, parts in by_vertex.items()}


def since(
    now: Mapping[str, VertexMetrics], before: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """What has been added to metrics since they were gathered before."""
    return {
        name: _minus(vertex, before[name]) if name in before else vertex
        for name, vertex in now.items()
    }


def plus(
    before: Mapping[str, VertexMetrics], more: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """Metrics to which something has been added: the inverse of `since`."""
    total = dict(before)
    for name, vertex in more.items():
        if name not in total:
            total[name] = vertex
            continue
        earlier = total[name]
        processors = [_sum(a, b) for a, b in zip(earlier["processors"], vertex["processors"])]
        total[name] = {
            **_sum(earlier, vertex),
            "processors": processors,
            "fused_with": vertex["fused_with"],
        }
    return total


def _sum(before: ProcessorMetrics, more: ProcessorMetrics) -> ProcessorMetrics:
    return {
        "received": before["received"] + more["received"],
        "emitted": before["emitted"] + more["emitted"],
        "skipped": before["skipped"] + more["skipped"],
        "dead_letters": before["dead_letters"] + more["dead_letters"],
        "queue_fill": more["queue_fill"],
        "busy_seconds": before["busy_seconds"] + more["busy_seconds"],
    }


def _minus(now: VertexMetrics, before: VertexMetrics) -> VertexMetrics:
    processors = [
        _difference(later, earlier)
        for later, earlier in zip(now["processors"], before["processors"])
    ]
    return {
        **_difference(now, before),
        "processors": processors,
        "fused_with": now["fused_with"],
    }


def _difference(now: ProcessorMetrics, before: ProcessorMetrics) -> ProcessorMetrics:
    return {
        "received": now["received"] - before["received"],
        "emitted": now["emitted"] - before["emitted"],
        "skipped": now["skipped"] - before["skipped"],
        "dead_letters": now["dead_letters"] - before["dead_letters"],
        "queue_fill": now["queue_fill"],
        "busy_seconds": now["busy_seconds"] - before["busy_seconds"],
    }


def without_times(metrics: Mapping[str, VertexMetrics]) -> dict[str, VertexMetrics]:
    """Metrics with all times set to 0, so that the same work always gives the same metrics."""
    return {
        name: {
            **vertex,
            "busy_seconds": 0.0,
            "processors": [{**part, "busy_seconds": 0.0} for part in vertex["processors"]],
        }
        for name, vertex in metrics.items()
    }


def added_up(tasks: Sequence[Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """The metrics of several parts of a job together, by vertex."""
    total: dict[str, Any] = {}
    for name in order:
        parts = [task[name] for task in tasks if name in task]
        if parts:
            numbers = {key: sum(part[key] for part in parts) for key in _NUMBERS}
            processors = [processor for part in parts for processor in part["processors"]]
            total[name] = {
                **numbers,
                "processors": processors,
                "fused_with": parts[0]["fused_with"],
            }
    return total


_NUMBERS = ("received", "emitted", "skipped", "dead_letters", "queue_fill", "busy_seconds")


def _of_processor(tasklet: ProcessorTasklet, position: int, length: int) -> ProcessorMetrics:
    received, emitted = tasklet.received, 0
    if isinstance(tasklet.processor, FusedProcessor):
        received, emitted = tasklet.processor.vertex_counts()[position]
    if position == length - 1:  # only the last of fused vertices has queues, for each of its edges
        emitted = sum(route.moved for route in tasklet.routes[: len(tasklet.outbox.buckets)])
    handler = tasklet.handlers[position] if tasklet.handlers else None
    bad = 0 if handler is None else handler.count
    return {
        "received": received,
        "emitted": emitted,
        "skipped": 0 if handler is None or handler.keeps else bad,
        "dead_letters": bad if handler is not None and handler.keeps else 0,
        "queue_fill": sum(edge.rows for edge in tasklet.inbound) if position == 0 else 0,
        "busy_seconds": tasklet.busy,
    }


def _of_vertex(parts: list[ProcessorMetrics], fused_with: list[str]) -> VertexMetrics:
    return {
        "received": sum(part["received"] for part in parts),
        "emitted": sum(part["emitted"] for part in parts),
        "skipped": sum(part["skipped"] for part in parts),
        "dead_letters": sum(part["dead_letters"] for part in parts),
        "queue_fill": sum(part["queue_fill"] for part in parts),
        "busy_seconds": sum(part["busy_seconds"] for part in parts),
        "processors": parts,
        "fused_with": fused_with,
    }
