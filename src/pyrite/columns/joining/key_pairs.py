"""Makes the keys of the two sides of a join comparable.

Two values are equal if Python's `==` says so, as in joins of items: 1 equals 1.0 and True, a moment
equals the same moment in another time zone, and 0.0 equals -0.0. NaN equals NaN. Null equals
nothing. A pair of columns becomes two arrays of the same kind (int64, or text, or bytes), in which
equal values are equal and null stands for all that cannot match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.schemas import InvalidBatch
from pyrite.keys import one_nan

Convert: TypeAlias = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two functions that convert the key columns of the left and of the right side. The right one
    must have seen all its values before the left one is called."""

    left: Convert
    right: Convert


def key_pair(left: pa.DataType, right: pa.DataType, describe: Callable[[], str]) -> KeyPair:
    """How to compare a left column with a right one. Raises an error, which begins with what
    `describe` returns, if no values of the two types are equal."""
    a, b = _values(left), _values(right)
    kinds = _kind(a), _kind(b)
    if "null" in kinds:
        return KeyPair(_nothing, _nothing)
    if kinds == ("number", "number"):
        return _numbers(a, b)
    if kinds[0] != kinds[1]:
        raise InvalidBatch(
            f"{describe()} have the types {left} and {right}, whose values are never equal; cast "
            "one of them before the join"
        )
    if kinds[0] in ("text", "bytes"):
        return KeyPair(_plain, _plain)
    if kinds[0] == "date":
        return KeyPair(_days, _days)
    if kinds[0] in _WITH_UNITS:
        return _times(a, b)
    return _by_value()


def _values(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


_WITH_UNITS: Final = ("local time", "moment", "time of day", "duration")


def _kind(type_: pa.DataType) -> str:
    """Values of different kinds are never equal."""
    t = pa.types
    if t.is_null(type_):
        return "null"
    if t.is_boolean(type_) or t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_):
        return "number"
    if t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_):
        return "text"
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_):
        return "bytes"
    if t.is_fixed_size_binary(type_):
        return "bytes"
    if t.is_date(type_):
        return "date"
    if t.is_timestamp(type_):
        return "moment" if type_.tz is not None else "local time"
    if t.is_time(type_):
        return "time of day"
    if t.is_duration(type_):
        return "duration"
    return "other"


def _plain(array: pa.Array) -> pa.Array:
    """Without dictionary, and bytes of any length."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.large_binary())
    return array


def _nothing(array: pa.Array) -> pa.Array:
    return pa.nulls(len(array), pa.int64())


def _days(array: pa.Array) -> pa.Array:
    return _plain(array).cast(pa.date32()).cast(pa.int32()).cast(pa.int64())


def _numbers(left: pa.DataType, right: pa.DataType) -> KeyPair:
    t = pa.types
    floats = [t.is_floating(each) for each in (left, right)]
    if t.is_decimal(left) or t.is_decimal(right):
        return _by_value() if any(floats) else _decimals(left, right)
    if all(floats):
        return KeyPair(_bits, _bits)
    # A number of one side that the other side's type cannot have becomes null: it matches nothing.
    wide = t.is_uint64(left) or t.is_uint64(right)
    if any(floats):
        whole = _whole_unsigned if wide else _whole
        other = _unsigned if wide else _signed
        return KeyPair(whole if floats[0] else other, whole if floats[1] else other)
    if wide and left == right:
        return KeyPair(_unsigned, _unsigned)
    return KeyPair(_signed, _signed)


def _signed(array: pa.Array) -> pa.Array:
    array = _plain(array)
    if pa.types.is_uint64(array.type):
        fits = pc.less_equal(array, pa.scalar((1 << 63) - 1, pa.uint64()))
        return pc.if_else(fits, array, pa.scalar(None, pa.uint64())).cast(pa.int64())
    return array.cast(pa.int64())


def _unsigned(array: pa.Array) -> pa.Array:
    """The bits of an unsigned number as a signed one."""
    return _plain(array).view(pa.int64())


def _bits(array: pa.Array) -> pa.Array:
    """The bits of a float, the same for equal ones."""
    values, valid = _floats(array)
    values = values + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return _array(values.view(np.int64), valid)


def _whole(array: pa.Array) -> pa.Array:
    values, valid = _floats(array)
    valid &= (values >= -(2.0**63)) & (values < 2.0**63) & (np.floor(values) == values)
    return _array(np.where(valid, values, 0).astype(np.int64), valid)


def _whole_unsigned(array: pa.Array) -> pa.Array:
    values, valid = _floats(array)
    valid &= (values >= 0) & (values < 2.0**64) & (np.floor(values) == values)
    return _array(np.where(valid, values, 0).astype(np.uint64).view(np.int64), valid)


def _floats(array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    array = _plain(array).cast(pa.float64())
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return array.fill_null(0.0).to_numpy(zero_copy_only=False), valid.copy()


def _array(values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(values, mask=None if valid.all() else ~valid)


def _decimals(left: pa.DataType, right: pa.DataType) -> KeyPair:
    scale = max(each.scale for each in (left, right) if pa.types.is_decimal(each))
    if max(_digits(each) for each in (left, right)) + scale > 76 or scale < 0:
        return _by_value()
    wide = pa.decimal256(76, scale)

    def convert(array: pa.Array) -> pa.Array:
        array = _plain(array)
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int64())
        return array.cast(wide).view(pa.binary(32)).cast(pa.large_binary())

    return KeyPair(convert, convert)


def _digits(type_: pa.DataType) -> int:
    """How many digits a number of the type has at most before the decimal point."""
    return type_.precision - type_.scale if pa.types.is_decimal(type_) else 20


_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _times(left: pa.DataType, right: pa.DataType) -> KeyPair:
    """Times as numbers of the coarser unit of the two, which cannot overflow."""
    coarse = min((left.unit, right.unit), key=_PER_SECOND.__getitem__)

    def convert(array: pa.Array) -> pa.Array:
        array = _plain(array)
        factor = _PER_SECOND[array.type.unit] // _PER_SECOND[coarse]
        width = pa.int32() if pa.types.is_time32(array.type) else pa.int64()
        numbers = array.view(width).cast(pa.int64())
        if factor == 1:
            return numbers
        whole = pc.divide(numbers, factor)
        exact = pc.equal(pc.multiply(whole, factor), numbers)
        return pc.if_else(exact, whole, pa.scalar(None, pa.int64()))

    return KeyPair(convert, convert)


def _by_value() -> KeyPair:
    """Numbers for distinct values, by Python's own equality: for types that Arrow cannot compare,
    such as lists, or a decimal with a float."""
    known: dict[Any, int] = {}

    def right(array: pa.Array) -> pa.Array:
        return _per_distinct(array, lambda value: known.setdefault(_hashable(value), len(known)))

    def left(array: pa.Array) -> pa.Array:
        return _per_distinct(array, lambda value: known.get(_hashable(value)))

    return KeyPair(left, right)


def _per_distinct(array: pa.Array, code: Callable[[Any], int | None]) -> pa.Array:
    array = _plain(array)
    try:
        encoded = array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        codes = [None if value is None else code(value) for value in array.to_pylist()]
        return pa.array(codes, pa.int64())
    codes = [code(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(codes, pa.int64()).take(encoded.indices)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, tuple):  # a pair of a map; not equal to a list
        return (tuple, *map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    return one_nan(value)
