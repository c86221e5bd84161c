"""The vertices of a run as a table: how many items, how fast, how busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.table import Table

from pyrite.cli.showing.columns import Column, table_of
from pyrite.watching.views import VertexState, VertexView
from pyrite.watching.words import duration, rate, size

STYLES: Final[dict[VertexState, str]] = {
    "waiting": "dim",
    "running": "bold",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "yellow",
}


def vertices_table(vertices: Sequence[VertexView], width: int) -> Table:
    """Columns in which nothing is to be seen are left out."""
    styles = [STYLES[each.state] for each in vertices]
    names = Column(
        title="vertex", cells=[each.name for each in vertices], styles=styles, is_text=True
    )
    numbers = [
        Column(title=title, cells=[cell(each) for each in vertices], rank=rank)
        for title, rank, cell in _COLUMNS
    ]
    return table_of(
        [names, *(c for c in numbers if c.title in _ALWAYS or any(c.cells))],
        width,
    )


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


def _unless_zero(number: int) -> str:
    return f"{number:,}" if number else ""


_ALWAYS: Final = ("received", "emitted")

_COLUMNS: Final[list[tuple[str, int, Callable[[VertexView], str]]]] = [
    ("received", 0, lambda each: f"{each.received:,}"),
    ("in", 2, lambda each: rate(each.received_rate)),
    ("emitted", 0, lambda each: f"{each.emitted:,}"),
    ("out", 1, lambda each: rate(each.emitted_rate)),
    ("skipped", 3, lambda each: _unless_zero(each.skipped)),
    ("dead letters", 3, lambda each: _unless_zero(each.dead_letters)),
    ("waiting", 4, lambda each: _unless_zero(each.queue_fill)),
    ("busy", 5, lambda each: duration(each.busy_seconds) if each.busy_seconds else ""),
    ("held", 7, lambda each: size(each.held_bytes) if each.held_bytes else ""),
    ("spilled", 6, lambda each: size(each.spilled_bytes) if each.spilled_bytes else ""),
    ("skew", 8, lambda each: f"x {each.skew:.1f}" if each.skew >= 2 else ""),
]
