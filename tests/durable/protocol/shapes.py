"""Workflows for tests."""

from __future__ import annotations

from pyrite.durable.protocol.workflow import Edge, Kind, Task, Workflow


def task(name: str, kind: Kind, parts: int, *sources: str) -> Task:
    edges = [Edge(f"{source}-{name}", source) for source in sources]
    return Task(name, kind, parts, tuple(edges or [Edge(f"splits-{name}", None)]))


ONE = Workflow((task("only", "concurrent", 1),))
ONE_SEQUENTIAL = Workflow((task("only", "sequential", 1),))
CHAIN = Workflow(
    (
        task("in", "sequential", 2),
        task("map", "concurrent", 1, "in"),
        task("out", "sequential", 1, "map"),
    )
)
DIAMOND = Workflow(
    (
        task("in", "concurrent", 1),
        task("left", "concurrent", 1, "in"),
        task("right", "sequential", 2, "in"),
        task("merge", "concurrent", 1, "left", "right"),
        task("out", "sequential", 1, "merge"),
    )
)
TWO_SINKS = Workflow(
    (
        task("in", "concurrent", 1),
        task("a", "sequential", 1, "in"),
        task("b", "concurrent", 1, "in"),
    )
)
SHAPES = {
    "one": ONE,
    "one sequential": ONE_SEQUENTIAL,
    "chain": CHAIN,
    "diamond": DIAMOND,
    "two sinks": TWO_SINKS,
}
