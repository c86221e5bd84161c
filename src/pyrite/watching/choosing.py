"""Which vertices and stages to show where there is no room for all."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.watching.views import StageView, VertexView


def most_active(vertices: Sequence[VertexView], most: int) -> list[VertexView]:
    """At most so many vertices, in their order: those that failed, then those that do most now."""
    ranked = sorted(
        vertices,
        key=lambda each: (
            each.state != "failed",
            each.state != "running",
            -each.received_rate - each.emitted_rate,
            -each.queue_fill,
        ),
    )
    names = {each.name for each in ranked[: max(0, most)]}
    return [each for each in vertices if each.name in names]


def open_first(stages: Sequence[StageView], most: int) -> list[StageView]:
    """At most so many stages, in their order: those that are not done, then the last ones."""
    ranked = sorted(
        range(len(stages)), key=lambda n: (stages[n].done >= stages[n].total, -stages[n].done, -n)
    )
    return [stages[n] for n in sorted(ranked[: max(0, most)])]
