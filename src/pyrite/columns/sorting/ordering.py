"""The order of rows by columns: ascending or descending each, nulls last, equal rows as they came.
NaN is larger than all numbers, as in Polars and Spark; -0.0 equals 0.0; text and bytes are compared
byte by byte, which is Python's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.kernels import Kernels
from pyrite.columns.schemas import InvalidBatch, position_of

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True)
class Ordering:
    """Orders rows by columns."""

    by: tuple[str, ...]
    descending: tuple[bool, ...]
    kernels: Kernels

    def keys(self, batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
        """The columns to compare, as types that all kernels order in the same way."""
        columns = []
        for name in self.by:
            column = batch.column(position_of(batch.schema, name, where))
            columns.append(_ordered(column, name, where))
        return pa.record_batch(columns, [f"k{number}" for number in range(len(columns))])

    def order(self, keys: pa.RecordBatch) -> Numbers:
        """The numbers of the rows, in order."""
        if self.kernels == "polars" and not any(map(_not_in_polars, keys.schema.types)):
            import polars as pl

            frame = pl.DataFrame(pl.from_arrow(keys))
            descending = list(self.descending)
            if descending == [True] and keys.column(0).null_count:
                # Polars before 2 reverses the nulls of a single column.
                frame, descending = frame.with_columns(same=pl.lit(0)), [True, False]
            options: Any = {"descending": descending, "nulls_last": True}
            rows = frame.select(pl.arg_sort_by(frame.columns, maintain_order=True, **options))
            return rows.to_series().cast(pl.Int64).to_numpy()
        orders = ["descending" if each else "ascending" for each in self.descending]
        # Nulls come last unless it is told otherwise.
        sorted_rows = pc.sort_indices(keys, sort_keys=list(zip(keys.schema.names, orders)))
        numbers: Numbers = sorted_rows.cast(pa.int64()).to_numpy()
        return numbers

    def quantiles(self, keys: pa.RecordBatch, count: int) -> pa.RecordBatch:
        """At most so many distinct keys, in order, that divide the rows evenly."""
        order = self.order(keys)
        chosen = keys.take(pa.array(order[np.linspace(0, len(order) - 1, count).astype(int)]))
        rows = list(zip(*(column.to_pylist() for column in chosen.columns)))
        new = [number for number, row in enumerate(rows) if not number or row != rows[number - 1]]
        return chosen.take(pa.array(new))

    def ranges(self, keys: pa.RecordBatch, bounds: pa.RecordBatch) -> Numbers:
        """For each row, 2 * n if it lies between bounds n - 1 and n, or 2 * n + 1 if it equals
        bound n."""
        if bounds.schema.types != keys.schema.types:  # some columns had no values until now
            columns = [
                pa.nulls(len(column), kind) if column.null_count == len(column) else column
                for column, kind in zip(bounds.columns, keys.schema.types)
            ]
            bounds = pa.RecordBatch.from_arrays(columns, schema=keys.schema)
        return self._bounds_before(keys, bounds, equal=False) + self._bounds_before(
            keys, bounds, equal=True
        )

    def _bounds_before(
        self, keys: pa.RecordBatch, bounds: pa.RecordBatch, *, equal: bool
    ) -> Numbers:
        """For each row, how many bounds are less than it, or equal."""
        batches = [bounds, keys] if equal else [keys, bounds]
        order = self.order(_stacked(batches))
        first = 0 if equal else keys.num_rows
        is_bound = (order >= first) & (order < first + bounds.num_rows)
        before = np.empty(len(order), np.int64)
        before[order] = np.cumsum(is_bound)
        return before[bounds.num_rows :] if equal else before[: keys.num_rows]


def _stacked(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [pa.concat_arrays(pieces) for pieces in zip(*(each.columns for each in batches))]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _ordered(column: pa.Array, name: str, where: str) -> pa.Array:
    t = pa.types
    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if t.is_floating(kind):
        return _float_order(column.cast(pa.float64()))
    if t.is_null(kind) or t.is_boolean(kind):
        return column.cast(pa.int64())
    if t.is_integer(kind) or t.is_decimal128(kind) or t.is_decimal256(kind):
        return column
    if t.is_decimal(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if t.is_date32(kind) or t.is_time32(kind):
        return column.view(pa.int32())
    if t.is_temporal(kind) and not t.is_interval(kind):
        return column.view(pa.int64())
    if t.is_string(kind) or t.is_large_string(kind):
        return column.cast(pa.large_string())
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    raise InvalidBatch(
        f"{where}: the column {name!r} is {kind}, which has no order; sort by columns of numbers, "
        "text, bytes or times"
    )


def _not_in_polars(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale < 0))


def _float_order(column: pa.Array) -> pa.Array:
    """Whole numbers in the order of the floats."""
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # The bits of negative floats grow with their size.
    bits = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(bits, mask=missing)
