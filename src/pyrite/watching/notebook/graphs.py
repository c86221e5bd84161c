"""A graph that does not run, as HTML: a DAG, a pipeline, or a stage of one."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.drawing import Arrow, Box, svg
from pyrite.watching.notebook.frame import framed, graph, heading, note


def graph_html(
    title: str, boxes: Sequence[Box], arrows: Sequence[Arrow], *, problem: str | None = None
) -> str:
    """`problem` is why it cannot run as it is."""
    counts = [_count(len(boxes), "vertex", "vertices"), _count(len(arrows), "edge", "edges")]
    return framed(
        heading(title, None, [", ".join(counts)]),
        graph(svg(boxes, arrows)) if boxes else "",
        "" if problem is None else note(problem),
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
