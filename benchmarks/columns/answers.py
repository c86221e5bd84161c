"""Whether two sides gave the same answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from benchmarks.ratios import WrongOutcome

Rows: TypeAlias = Sequence[Sequence[Any]]


def check(query: str, rows: Rows, expected: Rows) -> None:
    """Sums of doubles depend on their order, so their last digits may differ."""
    if len(rows) != len(expected):
        raise WrongOutcome(f"{query} has {len(rows)} rows, but {len(expected)} in Polars")
    for row, in_polars in zip(rows, expected):
        if len(row) != len(in_polars) or not all(map(_is_close, row, in_polars)):
            raise WrongOutcome(f"{query} has the row {row}, which is {in_polars} in Polars")


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
