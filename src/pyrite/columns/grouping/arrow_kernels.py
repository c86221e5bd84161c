"""Groups tables with the kernels of Arrow. They take every type that a grouping takes."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as of

from pyrite.columns.grouping.steps import Step, TooLarge, fits
from pyrite.columns.grouping.types import DIGITS, HELD_WHOLE_SUM, MOST_DIGITS, is_whole

_NON_NULL: Final = pc.CountOptions(mode="only_valid")
_EXACT: Final = decimal.Context(prec=200)


def grouped(
    table: pa.Table, keys: Sequence[str], steps: Sequence[Step], *, keep_order: bool
) -> Any:
    """One row per distinct key: the keys, and the target of each step. With `keep_order`, the rows
    are in the order in which their keys first appear, and equal input gives equal output."""
    unions = [step for step in steps if step.op == "union"]
    if unions:
        table = _exploded(table, unions)
    columns = {key: _with_one_zero(table[key]) for key in keys}
    asked: list[tuple[str, str, Any]] = []
    row_numbers = None
    if keep_order or any(step.op == "first" for step in steps):
        row_numbers = pa.array(np.arange(table.num_rows))
    for step in steps:
        column, function, options = table[step.source], step.op, None
        if step.op == "sum":
            column = _summable(column, step.source)
        elif step.op == "total":
            function = "sum"
        elif step.op == "first":  # Arrow's own `first` does not take all types
            column, function = _where_valid(row_numbers, column), "min"
        elif step.op in ("distinct", "union"):
            column, function, options = _with_one_zero(column), "distinct", _NON_NULL
        elif step.op == "count":
            options = _NON_NULL
        columns[step.target] = column
        asked.append((step.target, function, options))
    if keep_order:
        columns["row"] = row_numbers
        asked.append(("row", "min", None))
    # With several threads, floats are added in another order in each run.
    found = pa.table(columns).group_by(list(keys), use_threads=not keep_order).aggregate(asked)
    if keep_order:
        found = found.take(pc.sort_indices(found.column(found.num_columns - 1)))
    results = dict(zip(keys, found.columns))
    for step, column in zip(steps, found.columns[len(keys) :]):
        results[step.target] = _finished(step, column, table)
    return pa.table(results)


def _finished(step: Step, column: pa.ChunkedArray, table: pa.Table) -> pa.ChunkedArray:
    if step.op == "first":
        return table[step.source].combine_chunks().take(column.combine_chunks())
    if step.op != "sum":
        return column
    if is_whole(column.type):
        return column.cast(HELD_WHOLE_SUM)
    if is_whole(table[step.source].type):
        return column.cast(HELD_WHOLE_SUM)
    if of.is_decimal128(table[step.source].type):
        try:
            return column.cast(pa.decimal128(DIGITS, column.type.scale))
        except pa.ArrowInvalid:
            raise TooLarge(step.source) from None
    return column


def _summable(column: pa.ChunkedArray, source: str) -> pa.ChunkedArray:
    """The column with a type whose sum cannot overflow: Arrow's sums overflow without an error."""
    kind, count = column.type, len(column)
    if of.is_boolean(kind):
        return column.cast(pa.uint8())
    if of.is_integer(kind):
        if kind.bit_width < 64 or fits(*_extremes(column), count, 1 << 63):
            return column
        return column.cast(pa.decimal128(20, 0))
    if of.is_decimal(kind):
        with decimal.localcontext(_EXACT):
            least, most = _extremes(column)
            if of.is_decimal128(kind):
                if fits(least, most, count, Decimal(10) ** (DIGITS - kind.scale)):
                    return column
                return column.cast(pa.decimal256(MOST_DIGITS, kind.scale))
            if not fits(least, most, count, Decimal(10) ** (MOST_DIGITS - kind.scale)):
                raise TooLarge(source)
    return column


def _extremes(column: pa.ChunkedArray) -> tuple[Any, Any]:
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()


def _with_one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with 0.0 for -0.0, and the same NaN for all NaNs: Arrow compares keys by their
    bits."""
    if not of.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def _where_valid(numbers: pa.Array, column: pa.ChunkedArray) -> pa.Array:
    if not column.null_count:
        return numbers
    valid = pc.is_valid(column).combine_chunks()
    return pc.if_else(valid, numbers, pa.scalar(None, pa.int64()))


def _exploded(table: pa.Table, unions: Sequence[Step]) -> pa.Table:
    """The table with a row for each value of the lists, below its own rows. In these rows only the
    key and the value are not null. In its own rows there is no value."""
    lists = {step.source for step in unions}
    single = table.select([name for name in table.column_names if name not in lists])
    keys = table.select([name for name in table.column_names if name.startswith("k")])
    tables = [single]
    for name in sorted(lists):
        column = table[name].combine_chunks()
        rows = keys.take(pc.list_parent_indices(column))
        tables.append(rows.append_column(name, pc.list_flatten(column)))
    return pa.concat_tables(tables, promote_options="default")
