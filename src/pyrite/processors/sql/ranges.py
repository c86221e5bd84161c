"""Ranges over a key: each row is in exactly one of them, whatever its key is. Pure code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `low` up to, but not including, `high`. None stands for no bound: a range without
    any bound has all rows, also those without a key."""

    low: Any = None
    high: Any = None
    is_null: bool = False
    """Whether it has the rows without a key, and no others."""

    @property
    def has_all(self) -> bool:
        return self.low is None and self.high is None and not self.is_null


def ranges_between(boundaries: Sequence[Any]) -> tuple[KeyRange, ...]:
    """The ranges that the boundaries make, which are in order; and one for rows without a key. The
    first and the last range have no end, so new rows are in one of them.

    >>> [str(r.low) + ".." + str(r.high) for r in ranges_between([3, 5]) if not r.is_null]
    ['None..3', '3..5', '5..None']
    """
    bounds: list[Any] = []
    for boundary in boundaries:
        if boundary is not None and (not bounds or boundary != bounds[-1]):
            bounds.append(boundary)  # a key that many rows have is a boundary several times
    if not bounds:
        return (KeyRange(),)
    inner = [KeyRange(low, high) for low, high in pairwise(bounds)]
    return (
        KeyRange(high=bounds[0]),
        *inner,
        KeyRange(low=bounds[-1]),
        KeyRange(is_null=True),
    )
