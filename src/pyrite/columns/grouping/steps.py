"""What kernels do: group a frame by its key columns, and reduce other columns by steps.

The columns of frames in memory have names that no user's column can disturb: k0, k1, ... are the
key, v0, v1, ... the values of rows, and s0, s1, ... the parts of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pyrite.columns.grouping.aggregates import Part


@dataclass(frozen=True, slots=True)
class Step:
    """Reduces the column `source` to the column `target`, by `op`: an op of a part; or `total`, a
    sum of counts; or `union`, of lists of distinct values."""

    op: str
    source: str
    target: str


class TooLarge(Exception):
    """The sum of column `source` does not fit into any type."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source


_FOLDS: Final = {"count": "total", "distinct": "union"}


def of_rows(parts: Sequence[Part], columns: Sequence[str]) -> list[Step]:
    """The steps from rows to states."""
    return [
        Step(part.op, f"v{columns.index(part.column)}", f"s{number}")
        for number, part in enumerate(parts)
    ]


def of_states(parts: Sequence[Part]) -> list[Step]:
    """The steps from several states of each group to one."""
    return [
        Step(_FOLDS.get(part.op, part.op), f"s{number}", f"s{number}")
        for number, part in enumerate(parts)
    ]


def fits(least: Any, most: Any, count: int, limit: int | Decimal) -> bool:
    """Whether every sum of some of `count` numbers from `least` to `most` is below `limit`."""
    return least is None or max(abs(least), abs(most)) * count < limit
