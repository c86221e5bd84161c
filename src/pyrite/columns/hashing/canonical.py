"""The canonical bytes of a column's values (see `pyrite.partitioning.canonical_bytes`), without a
loop over rows for most types. Numbers stay hashes of numbers; other types become an array of bytes.

Lists, structs and other nested types are encoded row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.hashing import moments
from pyrite.columns.hashing.numbers import hashes_of_decimals, hashes_of_floats, hashes_of_integers
from pyrite.partitioning import canonical_bytes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Numbers:
    """The hash of each number, the rows that have NaN, and those that have null."""

    hashes: Array
    nan: Array | None
    null: Array | None


Form: TypeAlias = Numbers | pa.Array
"""Numbers, or a string or binary array with the canonical bytes of each value, null for null."""


def form_of(column: pa.Array, *, in_tuple: bool = False) -> Form:
    """The canonical bytes of values that are keys, or, `in_tuple`, that are parts of keys."""
    kind, types = column.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        return column
    if types.is_integer(kind):
        return Numbers(hashes_of_integers(_values(column)), None, _nulls(column))
    if types.is_floating(kind):
        floats = _values(column).astype(np.float64, copy=False)
        nan = np.isnan(floats)
        return Numbers(hashes_of_floats(floats), nan if nan.any() else None, _nulls(column))
    if types.is_boolean(kind):
        return form_of(column.cast(pa.int8()))
    if types.is_decimal(kind):
        return Numbers(hashes_of_decimals(_words(column), kind.scale), None, _nulls(column))
    if types.is_temporal(kind) and not types.is_interval(kind):
        return moments.canonical(column)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _binary(column, in_tuple=in_tuple)
    return _row_by_row(column, in_tuple=in_tuple)


def _values(column: pa.Array, kind: Any = None) -> Array:
    """The values of a column of numbers. Those of nulls are any."""
    values = np.frombuffer(column.buffers()[1], kind or column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]


def _words(column: pa.Array) -> Array:
    """The uint64 words of each decimal."""
    width = column.type.byte_width
    if width < 8:
        return _values(column, "<i4").astype(np.int64).view(np.uint64).reshape(-1, 1)
    return _values(column, f"V{width}").view(np.uint64).reshape(-1, width // 8)


def _nulls(column: pa.Array) -> Array | None:
    if not column.null_count:
        return None
    nulls: Array = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _binary(column: pa.Array, *, in_tuple: bool) -> pa.Array:
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    tag = pa.scalar(_BINARY, column.type)
    tagged = pc.binary_join_element_wise(tag, column, pa.scalar(b"", column.type))
    return _latin_1_as_utf_8(tagged) if in_tuple else tagged


_BINARY: Final = canonical_bytes(b"")


def _latin_1_as_utf_8(column: pa.Array) -> pa.Array:
    """Bytes in a tuple are text: each byte is a character, which has two bytes from 128 on."""
    large = column.cast(pa.large_binary())
    validity, offsets, values = large.buffers()
    data = np.frombuffer(values or b"", np.uint8)
    if not len(data) or data.max() < 128:
        return column
    starts = np.frombuffer(offsets, np.int64, large.offset + len(large) + 1)
    data = data[: starts[-1]]
    is_wide = data >= 128
    before = np.concatenate([[0], is_wide.cumsum()])
    made = np.repeat(data, is_wide + 1)
    wide = np.flatnonzero(is_wide)
    at = wide + before[wide]
    made[at] = 0xC0 | (data[wide] >> 6)
    made[at + 1] = 0x80 | (data[wide] & 0x3F)
    buffers = [validity, pa.py_buffer(starts + before[starts]), pa.py_buffer(made)]
    return pa.LargeBinaryArray.from_buffers(
        large.type, len(large), buffers, large.null_count, large.offset
    )


def _row_by_row(column: pa.Array, *, in_tuple: bool) -> pa.Array:
    values = column.to_pylist()
    if in_tuple:
        return pa.array([canonical_bytes((value,))[_TUPLE:] for value in values], pa.binary())
    return pa.array(map(canonical_bytes, values), pa.binary())


_TUPLE: Final = len(canonical_bytes(()))
