"""Finds keys of one side of a join on the other side.

A lookup is made once from the right side's keys. Each distinct key has a code, a number from 0. It
gives the codes of the right rows, and finds those of left rows; -1 is a key that is not there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.kernels import Kernels

if TYPE_CHECKING:
    import polars as pl

Codes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
SPARSEST = 64
"""Whole numbers are their own codes if at least one of this many in their range occurs,"""
ALWAYS = 1 << 23
"""or if their range is smaller than this: a table of so many row numbers takes 32 MB."""


class Lookup(Protocol):
    """The distinct keys of the right side."""

    held: Codes
    """The code of each right row."""
    size: int
    """Above all codes."""
    fixed_cost: int
    """How many right rows each call of `find` goes through, however few left rows there are."""

    def find(self, columns: Sequence[pa.Array]) -> Codes: ...


def lookup(
    columns: Sequence[pa.Array], kernels: Kernels, *, most_codes: int = sys.maxsize
) -> Lookup:
    """A lookup of keys of one or more columns, as `key_pairs` makes them. There are at most
    `most_codes` codes, or one for each key."""
    if len(columns) == 1 and (dense := Dense.of(columns[0], most_codes)) is not None:
        return dense
    if kernels == "polars":
        return PolarsLookup(columns)
    if len(columns) == 1:
        return ArrowLookup(columns[0])
    return Combined(columns)


class Dense:
    """Whole numbers of a small range: a key is its own code. It finds a key without a hash table,
    so it need not be prepared again for each batch."""

    fixed_cost = 0

    def __init__(self, column: pa.Array, lowest: int, highest: int) -> None:
        self._lowest, self._highest = lowest, highest
        self.size = highest - lowest + 1
        self.held = self.find([column])

    @staticmethod
    def of(column: pa.Array, most_codes: int) -> Dense | None:
        """A lookup of these keys, or None if their range is too large."""
        if not pa.types.is_int64(column.type):
            return None
        ends = pc.min_max(column).as_py()
        lowest, highest = ends["min"], ends["max"]
        if lowest is None:
            return Dense(column, 0, -1)
        if highest - lowest >= min(most_codes, max(SPARSEST * len(column), ALWAYS)):
            return None
        return Dense(column, lowest, highest)

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        column = columns[0]
        keys = (column.fill_null(0) if column.null_count else column).to_numpy()
        codes: Codes = keys - self._lowest
        # As unsigned numbers, those below the lowest key are larger than all others.
        codes[codes.view(np.uint64) >= self.size] = -1
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes


class ArrowLookup:
    """Keys of one column of any kind, with Arrow's hash table."""

    def __init__(self, column: pa.Array) -> None:
        encoded = _large(column).dictionary_encode()
        self._keys = encoded.dictionary
        self.size = self.fixed_cost = len(self._keys)
        self.held = _codes(encoded.indices)

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        return _codes(pc.index_in(_large(columns[0]), value_set=self._keys, skip_nulls=True))


class Combined:
    """Keys of several columns. The codes of the columns are put together, from left to right."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        first, *others = (_one_column(column) for column in columns)
        self._first = first
        self._steps: list[tuple[Lookup, Lookup]] = []
        codes, size = first.held, first.size
        for other in others:
            both = _one_column(_together(codes, other.held, other.size))
            self._steps.append((other, both))
            codes, size = both.held, both.size
        self.held, self.size = codes, size
        self.fixed_cost = sum(
            each.fixed_cost for each in (first, *(part for step in self._steps for part in step))
        )

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        codes = self._first.find(columns[:1])
        for column, (other, both) in zip(columns[1:], self._steps):
            codes = both.find([_together(codes, other.find([column]), other.size)])
        return codes


def _one_column(column: pa.Array) -> Lookup:
    return Dense.of(column, 1 << 31) or ArrowLookup(column)


def _together(codes: Codes, others: Codes, size: int) -> pa.Array:
    """One number for two codes, both of which are below 2^31."""
    missing = (codes < 0) | (others < 0)
    return pa.array(codes * size + others, mask=missing if missing.any() else None)


class PolarsLookup:
    """Keys of one or more columns, with the joins of Polars."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        import polars as pl

        keys = _frame(columns)
        is_unique = keys.n_unique() == len(keys)
        distinct = keys if is_unique else keys.unique()
        codes = pl.Series("code", np.arange(len(distinct)))
        self._keys = distinct.with_columns(codes).drop_nulls()
        self.size = self.fixed_cost = len(distinct)
        if is_unique and len(self._keys) == len(keys):
            self.held = codes.to_numpy()
        else:
            self.held = self.find(columns)

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        import polars as pl

        keys = _frame(columns)
        rows = pl.Series("row", np.arange(len(keys)))
        # Faster than a left join that keeps the order.
        found = (
            keys.lazy()
            .with_columns(rows)
            .join(self._keys.lazy(), on=keys.columns, how="inner")
            .select("row", "code")
            .collect(engine="streaming")
        )
        codes = np.full(len(keys), -1, np.int64)
        codes[found.get_column("row").to_numpy()] = found.get_column("code").to_numpy()
        return codes


def _frame(columns: Sequence[pa.Array]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame([pl.Series(f"k{n}", column) for n, column in enumerate(columns)])


def _large(column: pa.Array) -> pa.Array:
    if pa.types.is_int64(column.type):
        return column
    text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type)
    if text or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary())


def _codes(indices: pa.Array) -> Codes:
    codes: Codes = indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return codes
