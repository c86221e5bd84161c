"""The types of groupings: how columns are held in memory, and the types of states and results.

In memory a column has the simplest type that has the same order and the same equal values: a
timestamp is an int64, a dictionary is its values. So both kernels need only a few types, and give
equal results. The rules are the same for both kernels:

- a sum of whole numbers or bools is an int64. Its state is wider, so that only the end result can
  overflow;
- a sum of floats is a float64, and one of decimals a decimal of the most digits;
- a mean is a float64; counts are int64;
- min, max and first have the type of the column, without its dictionary.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as of

from pyrite.columns.frames import door_type

WHOLE_SUM: Final = pa.decimal128(37, 0)
"""The type of sums of whole numbers in batches of states. Sums of decimals have 38 or 76 digits, so
the two differ."""

DIGITS: Final = 38
MOST_DIGITS: Final = 76
HELD_WHOLE_SUM: Final = pa.decimal128(DIGITS, 0)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column in batches, without their dictionary."""
    kind = door_type(kind)
    return plain(kind.value_type) if of.is_dictionary(kind) else kind


def held(kind: pa.DataType) -> pa.DataType:
    """The type that a column of a type has in memory. A type without an order, such as a list, is
    its own."""
    kind = plain(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return held(kind.storage_type)
    if of.is_timestamp(kind) or of.is_duration(kind) or of.is_time64(kind) or of.is_date64(kind):
        return pa.int64()
    if of.is_date32(kind) or of.is_time32(kind):
        return pa.int32()
    if of.is_string(kind):
        return pa.large_string()
    if of.is_binary(kind) or of.is_fixed_size_binary(kind):
        return pa.large_binary()
    if of.is_float16(kind):
        return pa.float32()
    if of.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    if of.is_null(kind):
        return pa.int8()  # null columns of this type: pyarrow's own null type fails in places
    return kind


def is_ordered(kind: pa.DataType) -> bool:
    """Whether values of a type can be compared, so that they have a minimum and can be keys."""
    kind = held(kind)
    return bool(
        of.is_boolean(kind)
        or of.is_integer(kind)
        or of.is_floating(kind)
        or of.is_decimal(kind)
        or of.is_large_string(kind)
        or of.is_large_binary(kind)
    )


def is_whole(kind: pa.DataType) -> bool:
    return bool(of.is_integer(kind) or of.is_boolean(kind))


def state_of(op: str, kind: pa.DataType) -> pa.DataType | None:
    """The type of a part of a state, in batches of states; None if the column has a type that `op`
    does not take."""
    kind = plain(kind)
    if op == "count":
        return pa.int64()
    if op == "first" or of.is_null(kind):
        return pa.list_(kind) if op == "distinct" else kind
    if op == "sum":
        if is_whole(kind):
            return WHOLE_SUM
        if of.is_floating(kind):
            return pa.float64()
        if of.is_decimal256(kind):
            return pa.decimal256(MOST_DIGITS, kind.scale)
        return pa.decimal128(DIGITS, kind.scale) if of.is_decimal(kind) else None
    if not is_ordered(kind):
        return None
    return pa.list_(kind) if op == "distinct" else kind


def held_state(op: str, kind: pa.DataType) -> pa.DataType:
    """The type that a part of a state has in memory."""
    if op == "sum" and kind == WHOLE_SUM:
        return HELD_WHOLE_SUM
    return pa.list_(held(kind.value_type)) if op == "distinct" else held(kind)


def result_of(function: str, state: pa.DataType) -> pa.DataType:
    """The type of the result of an aggregate, from the type of (the first part of) its state."""
    if function in ("count", "count_distinct"):
        return pa.int64()
    if function == "mean":
        return pa.float64()
    return pa.int64() if function == "sum" and state == WHOLE_SUM else state


def as_held(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column with the type that it has in memory, `kind`."""
    if column.type == kind:
        return column
    return pa.chunked_array([_as_held(chunk, kind) for chunk in column.chunks], kind)


def _as_held(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if of.is_null(column.type):
        return pa.nulls(len(column), kind)
    if of.is_dictionary(column.type):
        return _as_held(column.dictionary_decode(), kind)
    if of.is_run_end_encoded(column.type):
        return _as_held(pc.run_end_decode(column), kind)
    if isinstance(column.type, pa.BaseExtensionType):
        return _as_held(column.storage, kind)
    if of.is_list(kind):
        return _with_values(column, _as_held(column.flatten(), kind.value_type))
    return column if column.type == kind else column.cast(kind)


def as_given(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column with the type that it has in batches, `kind`: the inverse of `as_held`."""
    if column.type == kind:
        return column
    if of.is_null(kind):
        return pa.nulls(len(column))
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, as_given(column, kind.storage_type))
    if of.is_list(kind):
        return _with_values(column, as_given(column.flatten(), kind.value_type))
    return column.cast(kind)


def _with_values(lists: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """Lists of the same lengths with other values. No list is null."""
    ends = pc.cumulative_sum(pc.list_value_length(lists).cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, values)
