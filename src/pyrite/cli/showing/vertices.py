"""The vertices of a run as a table: how many items, how fast, how busy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from pyrite.cli.showing.columns import Column, table_of
from pyrite.watching.vertex_table import columns_of
from pyrite.watching.views import VertexState, VertexView

STYLES: Final[dict[VertexState, str]] = {
    "waiting": "dim",
    "running": "bold",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "yellow",
}


def vertices_table(vertices: Sequence[VertexView], width: int) -> Table:
    names = Column(
        title="vertex",
        cells=[each.name for each in vertices],
        styles=[STYLES[each.state] for each in vertices],
        is_text=True,
    )
    numbers = [
        Column(title=each.title, cells=each.cells, rank=each.rank) for each in columns_of(vertices)
    ]
    return table_of([names, *numbers], width)
