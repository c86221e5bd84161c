"""Metrics of an execution: for each vertex and each of its processors, the items received and
emitted, the time spent and the memory taken; and how metrics of several parts are put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, cast

from pyrite.engine.fusion import Stretch
from pyrite.engine.heavy_keys import without_address
from pyrite.engine.plan import Topology, edge_name
from pyrite.engine.tasklets import ProcessorTasklet
from pyrite.functions import shorten
from pyrite.processor import Processor
from pyrite.processors.groups.aggregates import Nothing
from pyrite.processors.loops.fused import FusedProcessor

MOST_KEYS: Final = 5
"""How many of the heaviest keys of an edge are told."""
LONGEST_KEY: Final = 100


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
    held_bytes: int
    """About how much its groups, joins and sorts hold in memory now."""
    spilled_bytes: int
    """How much these have written to files, because it did not fit."""
    done: int
    """1 if it has completed; of a vertex, how many of its processors have."""


class InboundMetrics(TypedDict):
    """The edges from one vertex to another, unless these are fused."""

    received: int
    fill: int
    """How many items wait in the queues."""
    capacity: int
    """How many may wait there; 0 if that is not known."""


HeavyKeyMetrics = tuple[str, str, int, float]
"""The name of a partitioned edge, a key as text, about how many items it has, and which share of
all items of the edge these are."""


class VertexMetrics(ProcessorMetrics):
    processors: list[ProcessorMetrics]
    fused_with: list[str]
    """The vertices that run in the same loop as this one."""
    inbound: dict[str, InboundMetrics]
    """By the vertex that the edges come from."""
    heaviest_keys: list[HeavyKeyMetrics]
    """At most MOST_KEYS of each edge, the heaviest first."""


_COUNTED: Final = (
    *("received", "emitted", "skipped", "dead_letters"),
    *("busy_seconds", "spilled_bytes", "done"),
)
_NOW: Final = ("queue_fill", "held_bytes")
"""What may also become less."""
_NUMBERS: Final = (*_COUNTED, *_NOW)


def gather(
    topology: Topology, members: Sequence[tuple[Sequence[Stretch], Sequence[ProcessorTasklet]]]
) -> dict[str, VertexMetrics]:
    """The metrics of all vertices, in topological order."""
    by_vertex: dict[str, list[ProcessorMetrics]] = {vertex.name: [] for vertex in topology.vertices}
    tasklets_of: dict[str, list[ProcessorTasklet]] = {name: [] for name in by_vertex}
    fused: dict[str, list[str]] = {}
    for stretches, tasklets in members:
        for stretch, tasklet in zip(stretches, tasklets):
            names = [vertex.name for vertex in stretch.vertices]
            tasklets_of[names[0]].append(tasklet)
            numbers = _numbers_of(tasklet, len(names))
            for position, name in enumerate(names):
                by_vertex[name].append(_of_processor(tasklet, position, numbers))
                fused[name] = [other for other in names if other != name]
    return {
        name: _of_vertex(name, parts, fused.get(name, []), tasklets_of[name])
        for name, parts in by_vertex.items()
    }


def since(
    now: Mapping[str, VertexMetrics], before: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """What has been added to metrics since they were gathered before."""
    return {
        name: _combined(name, vertex, before[name], -1) if name in before else vertex
        for name, vertex in now.items()
    }


def plus(
    before: Mapping[str, VertexMetrics], more: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """Metrics to which something has been added: the inverse of `since`."""
    total = dict(before)
    for name, vertex in more.items():
        total[name] = _combined(name, vertex, total[name], 1) if name in total else vertex
    return total


def without_times(metrics: Mapping[str, VertexMetrics]) -> dict[str, VertexMetrics]:
    """Metrics without what depends on the time and on the free memory, so that the same work always
    gives the same metrics."""
    return {
        name: cast(VertexMetrics, _with(vertex, DEPENDS_ON_THE_RUN, 0))
        for name, vertex in metrics.items()
    }


DEPENDS_ON_THE_RUN: Final = ("busy_seconds", "held_bytes", "spilled_bytes")


def highest(
    before: Mapping[str, VertexMetrics], now: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """Metrics of the same work, which was begun again: what is counted never becomes less. The rest
    is as it is now."""
    return {
        name: _highest(before[name], vertex) if name in before else vertex
        for name, vertex in {**before, **now}.items()
    }


def _highest(before: VertexMetrics, now: VertexMetrics) -> VertexMetrics:
    def numbers(later: Any, earlier: Any, counted: Sequence[str]) -> dict[str, Any]:
        return {**later, **{key: max(later[key], earlier[key]) for key in counted}}

    inbound = {
        source: numbers(edge, before["inbound"].get(source, edge), ("received",))
        for source, edge in {**before["inbound"], **now["inbound"]}.items()
    }
    further = now if now["received"] >= before["received"] else before
    parts = [
        numbers(later, earlier, _COUNTED)
        for later, earlier in zip(now["processors"], before["processors"])
    ]
    return cast(
        VertexMetrics,
        {
            **numbers(now, before, _COUNTED),
            "processors": parts,
            "inbound": inbound,
            "heaviest_keys": further["heaviest_keys"],
        },
    )


def at_rest(metrics: Mapping[str, VertexMetrics]) -> dict[str, VertexMetrics]:
    """The metrics of work whose process is gone: nothing waits, and nothing is held."""
    return {
        name: cast(
            VertexMetrics,
            {
                **_with(vertex, _NOW, 0),
                "inbound": {
                    source: {**edge, "fill": 0, "capacity": 0}
                    for source, edge in vertex["inbound"].items()
                },
            },
        )
        for name, vertex in metrics.items()
    }


def not_begun(metrics: Mapping[str, VertexMetrics]) -> dict[str, VertexMetrics]:
    """The metrics of a part of the same job with the same vertices, before it begins."""
    return {
        name: cast(
            VertexMetrics, {**_with(vertex, _NUMBERS, 0), "inbound": {}, "heaviest_keys": []}
        )
        for name, vertex in metrics.items()
    }


def with_times(
    metrics: Mapping[str, VertexMetrics], told: Mapping[str, VertexMetrics]
) -> dict[str, VertexMetrics]:
    """The inverse of `without_times`, with times from metrics of the same work. Times that are
    there are kept if they are longer: another attempt may have been stopped early."""
    return {
        name: _with_times(vertex, told[name]) if name in told else vertex
        for name, vertex in metrics.items()
    }


def _with_times(vertex: VertexMetrics, told: VertexMetrics) -> VertexMetrics:
    def times(known: Any, of: Any) -> dict[str, Any]:
        return {key: max(known[key], of[key]) for key in ("busy_seconds", "spilled_bytes")}

    parts = zip(vertex["processors"], told["processors"])
    processors = [{**part, **times(part, of)} for part, of in parts]
    return cast(VertexMetrics, {**vertex, **times(vertex, told), "processors": processors})


def _with(vertex: VertexMetrics, names: Sequence[str], value: int) -> dict[str, Any]:
    """The same metrics with this value for some numbers, in total and of each processor."""
    values = dict.fromkeys(names, value)
    return {
        **vertex,
        **values,
        "processors": [{**part, **values} for part in vertex["processors"]],
    }


def added_up(tasks: Sequence[Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """The metrics of several parts of a job together, by vertex."""
    total: dict[str, Any] = {}
    for name in order:
        parts = [task[name] for task in tasks if name in task]
        if parts:
            inbound = _inbound_of(part["inbound"] for part in parts)
            total[name] = {
                **{key: sum(part[key] for part in parts) for key in _NUMBERS},
                "processors": [processor for part in parts for processor in part["processors"]],
                "fused_with": parts[0]["fused_with"],
                "inbound": inbound,
                "heaviest_keys": _heaviest(
                    name, inbound, (key[:3] for part in parts for key in part["heaviest_keys"])
                ),
            }
    return total


def _combined(name: str, now: VertexMetrics, before: VertexMetrics, sign: int) -> VertexMetrics:
    """What is counted, plus or minus what was counted before; the rest as it is now."""

    def numbers(later: Any, earlier: Any, counted: Sequence[str]) -> dict[str, Any]:
        return {**later, **{key: later[key] + sign * earlier[key] for key in counted}}

    nothing = {"received": 0}
    earlier = before["inbound"]
    inbound: Any = {
        source: numbers(edge, earlier.get(source, nothing), ("received",))
        for source, edge in now["inbound"].items()
    }
    counts = [
        *(key[:3] for key in now["heaviest_keys"]),
        *((edge, key, sign * count) for edge, key, count, _ in before["heaviest_keys"]),
    ]
    return cast(
        VertexMetrics,
        {
            **numbers(now, before, _COUNTED),
            "processors": [
                numbers(later, part, _COUNTED)
                for later, part in zip(now["processors"], before["processors"])
            ],
            "inbound": inbound,
            "heaviest_keys": _heaviest(name, inbound, counts),
        },
    )


def _inbound_of(parts: Iterable[Mapping[str, InboundMetrics]]) -> dict[str, InboundMetrics]:
    total: dict[str, InboundMetrics] = {}
    for part in parts:
        for source, edge in part.items():
            known = total.get(source)
            total[source] = (
                edge
                if known is None
                else {
                    "received": known["received"] + edge["received"],
                    "fill": known["fill"] + edge["fill"],
                    "capacity": known["capacity"] + edge["capacity"],
                }
            )
    return total


def _heaviest(
    vertex: str,
    inbound: Mapping[str, InboundMetrics],
    counts: Iterable[tuple[str, str, int]],
) -> list[HeavyKeyMetrics]:
    """The heaviest keys of each edge, from counts of which one key may have several."""
    by_edge: dict[str, dict[str, int]] = {}
    for edge, key, count in counts:
        of_edge = by_edge.setdefault(edge, {})
        of_edge[key] = of_edge.get(key, 0) + count
    heaviest: list[HeavyKeyMetrics] = []
    for source, numbers in inbound.items():
        edge, total = edge_name(source, vertex), numbers["received"]
        found = sorted(by_edge.get(edge, {}).items(), key=lambda pair: -pair[1])
        heaviest += [
            (edge, key, count, min(1.0, count / total))
            for key, count in found[:MOST_KEYS]
            if count > 0 and total > 0
        ]
    return heaviest


_Numbers = tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]


def _numbers_of(tasklet: ProcessorTasklet, length: int) -> _Numbers:
    """By vertex, (received, emitted) and (held, spilled)."""
    processor = tasklet.processor
    if isinstance(processor, FusedProcessor):
        return processor.vertex_counts(), processor.vertex_memory()
    return [(tasklet.received, 0)] * length, [_memory_of(processor)] * length


def _of_processor(tasklet: ProcessorTasklet, position: int, numbers: _Numbers) -> ProcessorMetrics:
    counts, memory = numbers
    received, emitted = counts[position]
    held, spilled = memory[position]
    if (
        position == len(counts) - 1
    ):  # only the last of fused vertices has queues, for each of its edges
        edges = len(tasklet.outbox.buckets)
        moved = sum(route.moved for route in tasklet.routes[:edges])
        emitted = moved if tasklet.has_finished else max(moved, emitted * edges)
    handler = tasklet.handlers[position] if tasklet.handlers else None
    bad = 0 if handler is None else handler.count
    return {
        "received": received,
        "emitted": emitted,
        "skipped": 0 if handler is None or handler.keeps else bad,
        "dead_letters": bad if handler is not None and handler.keeps else 0,
        "queue_fill": sum(edge.rows for edge in tasklet.inbound) if position == 0 else 0,
        "busy_seconds": tasklet.busy_until_now,
        "held_bytes": 0 if tasklet.has_finished else held,
        "spilled_bytes": spilled,
        "done": int(tasklet.has_finished),
    }


def _memory_of(processor: Processor) -> tuple[int, int]:
    """What a processor says. One of the user's may have attributes with these names that mean
    something else, and a job must not fail because of its metrics."""
    try:
        held, spilled = processor.held_bytes, processor.spilled_bytes
    except Exception:
        return 0, 0
    return held if isinstance(held, int) else 0, spilled if isinstance(spilled, int) else 0


def _of_vertex(
    name: str,
    parts: list[ProcessorMetrics],
    fused_with: list[str],
    tasklets: Sequence[ProcessorTasklet],
) -> VertexMetrics:
    """`tasklets` are those whose queues lead to the vertex."""
    edges = [edge for tasklet in tasklets for edge in tasklet.inbound if edge.plan.source]
    inbound = _inbound_of(
        {
            edge.plan.source: {
                "received": edge.received,
                "fill": edge.rows,
                "capacity": edge.capacity,
            }
        }
        for edge in edges
    )
    heavy = (
        (edge.plan.name, text_of_key(key), count)
        for edge in edges
        if edge.heavy_keys is not None
        for key, count in edge.heavy_keys.heaviest(MOST_KEYS)
    )
    numbers: Any = {key: sum(cast(Any, part)[key] for part in parts) for key in _NUMBERS}
    return cast(
        VertexMetrics,
        {
            **numbers,
            "processors": parts,
            "fused_with": fused_with,
            "inbound": inbound,
            "heaviest_keys": _heaviest(name, inbound, heavy),
        },
    )


def text_of_key(key: Any) -> str:
    """The repr of a key, which is the same in each attempt of a task."""
    return without_address(shorten(None if key is Nothing.KEY else key, LONGEST_KEY))
