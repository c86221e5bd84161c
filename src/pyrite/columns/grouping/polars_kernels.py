"""Groups DataFrames with Polars, for columns of the types that it shares with Arrow."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.types as of

from pyrite.columns.grouping import arrow_kernels
from pyrite.columns.grouping.steps import Step, fits
from pyrite.columns.grouping.types import DIGITS

_WHOLE_SUM: Final = pl.Decimal(DIGITS, 0)
_EXACT: Final = decimal.Context(prec=200)


def takes(kind: pa.DataType) -> bool:
    """Whether Polars groups columns that have this type in memory."""
    if of.is_decimal128(kind):
        return bool(kind.scale >= 0)
    if of.is_floating(kind):
        return not of.is_float16(kind)
    return bool(
        of.is_boolean(kind)
        or of.is_integer(kind)
        or of.is_large_string(kind)
        or of.is_large_binary(kind)
    )


def grouped(
    frame: pl.DataFrame, keys: Sequence[str], steps: Sequence[Step], *, keep_order: bool
) -> pl.DataFrame:
    """One row per distinct key: the keys, and the target of each step. With `keep_order`, the rows
    are in the order in which their keys first appear, and equal input gives equal output."""
    wide = [step.source for step in steps if step.op == "sum" and _may_overflow(frame, step.source)]
    if any(frame.schema[name] == pl.Decimal for name in wide):
        found = arrow_kernels.grouped(as_arrow(frame), keys, steps, keep_order=keep_order)
        return as_polars(found)
    asked: list[pl.Expr] = []
    results: list[pl.Expr] = [pl.col(key) for key in keys]
    for step in steps:
        exprs, result = _reduced(step, frame[step.source], step.source in wide)
        asked += exprs
        results.append(result)
    lazy = frame.lazy().with_columns(
        pl.col(key) + 0.0 for key in keys if frame.schema[key].is_float()
    )  # one zero, as in Arrow's kernels
    # The streaming engine is twice as fast with many groups. It adds floats in another order in
    # each run, and it is slow at lists.
    lists = any(step.op in ("distinct", "union") for step in steps)
    if lists or (keep_order and _adds_floats(frame, steps)):
        if len(keys) == 1 and frame.schema[keys[0]].is_integer() and frame[keys[0]].is_sorted():
            lazy = lazy.with_columns(pl.col(keys[0]).set_sorted())  # then it is as fast
        groups = lazy.group_by(*keys, maintain_order=keep_order).agg(*asked)
        return groups.select(*results).collect(engine="in-memory")
    if not keep_order:
        return lazy.group_by(*keys).agg(*asked).select(*results).collect(engine="streaming")
    groups = lazy.with_row_index("row").group_by(*keys).agg(*asked, pl.col("row").min())
    return groups.sort("row").select(*results).collect(engine="streaming")


def held(frame: pl.DataFrame, columns: Mapping[str, str | None]) -> pl.DataFrame:
    """Columns of a frame under new names (from the new name to the old), with the types of memory.
    A column without an old name has only nulls."""
    return pl.DataFrame(
        [
            pl.Series(inside, [None], pl.Int8).new_from_index(0, frame.height)
            if name is None
            else _held(frame[name], inside)
            for inside, name in columns.items()
        ]
    )


def _held(column: pl.Series, name: str) -> pl.Series:
    if column.dtype.is_temporal():
        column = column.to_physical()
    elif column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    elif column.dtype == pl.Null:
        column = column.cast(pl.Int8)
    return column.alias(name)


def as_polars(table: pa.Table) -> pl.DataFrame:
    """A table that has the types of memory, as a DataFrame."""
    return pl.DataFrame({name: pl.from_arrow(table[name]) for name in table.column_names})


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """A DataFrame as a table that has the types of memory."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [
        field.with_type(pa.list_(field.type.value_type)) if of.is_large_list(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _reduced(step: Step, column: pl.Series, is_wide: bool) -> tuple[list[pl.Expr], pl.Expr]:
    """The expressions that reduce a column for each group, and the one that makes the result of
    theirs."""
    source, target = pl.col(step.source), pl.col(step.target)
    has_nulls = column.null_count() > 0
    if step.op in ("sum", "total"):
        kind, result = column.dtype, target
        if kind == pl.Float32:
            source = source.cast(pl.Float64)
        elif is_wide:
            source = source.cast(_WHOLE_SUM)
        elif kind != pl.Int64 and (kind.is_integer() or kind == pl.Boolean):
            source = source.cast(pl.Int64)
        if step.op == "sum" and (kind.is_integer() or kind == pl.Boolean):
            result = target.cast(_WHOLE_SUM)
        asked = [source.sum().alias(step.target)]
        if has_nulls:  # the sum of no values is null; that of Polars is 0
            count = f"{step.target}:count"
            asked.append(source.count().alias(count))
            result = pl.when(pl.col(count) > 0).then(result).alias(step.target)
        return asked, result
    if step.op == "count":
        count_of_all = source.count() if has_nulls else pl.len()
        return [count_of_all.alias(step.target)], target.cast(pl.Int64)
    if step.op == "first":
        firsts = source.drop_nulls() if has_nulls else source
        return [firsts.first().alias(step.target)], target
    if step.op == "min":
        return [source.min().alias(step.target)], target
    if step.op == "max":
        return [source.max().alias(step.target)], target
    if step.op == "union":
        source = source.list.explode()
    elif column.dtype.is_float():
        source = source + 0.0
    return [source.drop_nulls().unique(maintain_order=True).alias(step.target)], target


def _may_overflow(frame: pl.DataFrame, name: str) -> bool:
    column = frame[name]
    if column.dtype in (pl.Int64, pl.UInt64):
        return not fits(column.min(), column.max(), len(column), 1 << 63)
    if column.dtype == pl.Decimal:
        scale: Any = getattr(column.dtype, "scale", 0)
        with decimal.localcontext(_EXACT):
            limit = Decimal(10) ** (DIGITS - scale)
            return not fits(column.min(), column.max(), len(column), limit)
    return False


def _adds_floats(frame: pl.DataFrame, steps: Sequence[Step]) -> bool:
    return any(step.op == "sum" and frame.schema[step.source].is_float() for step in steps)
