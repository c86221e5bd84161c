"""Tables that fit the terminal: where it is narrow, the least important columns are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

GAP: Final = 2
SHORTEST_NAME: Final = 12
"""The first column is cut down to this before another one is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    cells: Sequence[str]
    rank: int = 0
    """Of the columns, the one with the highest rank is left out first; those of rank 0 stay."""
    styles: Sequence[str] = ()
    """One for each cell, or none."""
    is_text: bool = False
    """Whether it is aligned to the left."""
    is_whole: bool = False
    """Whether it is never cut, as an id that a person copies."""

    @property
    def least_width(self) -> int:
        return self.width if self.is_whole else min(self.width, SHORTEST_NAME)

    @property
    def width(self) -> int:
        return max(cell_len(text) for text in (self.title, *self.cells))


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that have room. The first one may be cut down to SHORTEST_NAME."""
    kept = list(columns)
    while len(kept) > 1:
        needed = kept[0].least_width + sum(GAP + each.width for each in kept[1:])
        last = max(kept[1:], key=lambda column: column.rank)
        if needed <= width or not last.rank:
            break
        kept = [each for each in kept if each is not last]
    return kept


def table_of(columns: Sequence[Column], width: int) -> Table:
    """A table of the columns that fit into the width."""
    kept = fitting(columns, width)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, GAP, 0, 0))
    others = sum(GAP + each.width for each in kept[1:])
    for number, column in enumerate(kept):
        table.add_column(
            Text(column.title),
            justify="left" if column.is_text else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=max(column.least_width, width - others) if number == 0 else None,
        )
    for row in zip(*(_texts(column) for column in kept)):
        table.add_row(*row)
    return table


def _texts(column: Column) -> list[Text]:
    return [
        Text(cell, style=style or "")
        for cell, style in zip_longest(column.cells, column.styles[: len(column.cells)])
    ]
