"""Pairs the rows of two sides of a join, given the codes of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pyrite.columns.joining.lookup import Codes, Lookup

Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.signedinteger[Any]]]"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Numbers of rows: those of `left` with those of `right`. `left` is None if these are all left
    rows, once each; a `right` of -1 means that the left row has no match."""

    left: Rows | None
    right: Rows


class Matches:
    """The right rows of each code, in their order."""

    def __init__(self, lookup: Lookup) -> None:
        rows = np.flatnonzero(lookup.held >= 0)
        codes = lookup.held[rows] if len(rows) < len(lookup.held) else lookup.held
        # By code its only row or, if some codes have several rows, the number of a group of rows.
        # There is one more at the end, for code -1.
        width: Any = np.int32 if len(rows) < 1 << 31 else np.int64
        self._found: Rows = np.full(lookup.size + 1, -1, width)
        self._found[codes] = rows
        self._is_unique = bool((self._found[codes] == rows).all())
        if not self._is_unique:
            used = np.flatnonzero(self._found >= 0)
            self._found[used] = np.arange(len(used))
            groups = self._found[codes]
            self._counts = np.append(np.bincount(groups, minlength=len(used)), 0)
            self._starts = np.append(0, np.cumsum(self._counts)[:-1])
            self._rows = rows[np.argsort(groups, kind="stable")]

    def has(self, codes: Codes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of the left rows have a match."""
        has_match: np.ndarray[Any, np.dtype[np.bool_]] = self._found[codes] >= 0
        return has_match

    def pairs(self, codes: Codes, *, keeps_left: bool, most: int) -> Iterator[Pairs]:
        """The pairs of all left rows, in their order, at most so many at a time. With `keeps_left`,
        a left row without a match is there once."""
        if self._is_unique:
            yield from self._single(codes, keeps_left, most)
        else:
            yield from self._several(codes, keeps_left, most)

    def _single(self, codes: Codes, keeps_left: bool, most: int) -> Iterator[Pairs]:
        found = self._found[codes]
        left = None
        if not keeps_left:
            left = np.flatnonzero(found >= 0)
            if len(left) == len(found):
                left = None
            else:
                found = found[left]
        if len(found) <= most:
            if len(found):
                yield Pairs(left, found)
            return
        left = np.arange(len(found)) if left is None else left
        for start in range(0, len(found), most):
            yield Pairs(left[start : start + most], found[start : start + most])

    def _several(self, codes: Codes, keeps_left: bool, most: int) -> Iterator[Pairs]:
        groups = self._found[codes]
        counts = self._counts[groups]
        if keeps_left:
            counts = np.maximum(counts, 1)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, most):
            stop = min(start + most, total)
            first, last = np.searchsorted(ends, [start, stop - 1], side="right")
            here = slice(first, last + 1)
            before = ends[here] - counts[here]
            shown = np.minimum(ends[here], stop) - np.maximum(before, start)
            left = np.repeat(np.arange(first, last + 1), shown)
            # The number of a pair among those of its left row.
            nth = np.arange(start, stop) - np.repeat(before, shown)
            right = self._starts[groups[left]] + nth
            if not keeps_left:
                yield Pairs(left, self._rows[right])
                continue
            matched = groups[left] >= 0
            yield Pairs(left, np.where(matched, self._rows[np.where(matched, right, 0)], -1))
