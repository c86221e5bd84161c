"""The columns of a table of vertices, the same wherever one is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyrite.watching.heavy_keys import notable_keys
from pyrite.watching.views import VertexView
from pyrite.watching.words import duration, rate, size


@dataclass(frozen=True, slots=True)
class Shown:
    """A column. Where there is not enough room, the one with the highest rank is left out first."""

    title: str
    rank: int
    cells: tuple[str, ...]


def columns_of(vertices: Sequence[VertexView]) -> list[Shown]:
    """The columns after the name. Those in which nothing is to be seen are left out."""
    columns = [
        Shown(title, rank, tuple(cell(each) for each in vertices)) for title, rank, cell in _COLUMNS
    ]
    return [column for column in columns if not column.rank or any(column.cells)]


def _unless_zero(number: int) -> str:
    return f"{number:,}" if number else ""


def _heaviest(vertex: VertexView) -> str:
    keys = notable_keys(vertex)
    if not keys:
        return ""
    key = max(keys, key=lambda each: each.share)
    return f"{key.key}: {key.share:.0%}"


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
    ("heaviest key", 9, _heaviest),
]
