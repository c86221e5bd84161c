"""The pictures of the page: the DAG of a run, and the graph of the jobs of a workload."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pyrite import drawing
from pyrite.drawing import layered
from pyrite.watching.views import RunView


def graph_of_run(view: RunView, unfold: frozenset[str]) -> str:
    """The DAG as SVG. The page colours it; the groups in `unfold` are not folded."""
    return graph(
        (vertex.name for vertex in view.vertices),
        ((edge.source, edge.destination, edge.label) for edge in view.edges),
        unfold,
        "vertices",
    )


def graph(
    names: Iterable[str],
    edges: Iterable[tuple[str, str, str]],
    unfold: frozenset[str],
    noun: str,
) -> str:
    return _drawn(tuple(names), tuple(edges), unfold, noun)


@lru_cache(32)
def _drawn(
    names: tuple[str, ...],
    edges: tuple[tuple[str, str, str], ...],
    unfold: frozenset[str],
    noun: str,
) -> str:
    """Where the boxes are depends on their names and edges alone, and takes a while to find."""
    boxes = [drawing.Box(name) for name in names]
    arrows = [drawing.Arrow(*edge) for edge in edges]
    return layered.svg(boxes, arrows, unfold=unfold, noun=noun, meters=noun == "vertices")
