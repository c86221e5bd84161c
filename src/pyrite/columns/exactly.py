"""Arrays of Python values that are exactly these values.

pyarrow converts 1.5 to the integer 1, a datetime to its date, a moment in UTC to a time without a
zone, and 1e300 to an infinite float32, and says nothing. Here that is an error. Only floats may
change a little: in a column of float32 or float16 they are rounded, as the type says.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa


class Inexact(ValueError):
    """A value that would change."""


def exact_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as an array. Raises if one of them does not fit, or would be another value.

    >>> exact_array([1, None, 2.0], pa.int64()).to_pylist()
    [1, None, 2]
    """
    made = pa.array(values, kind)
    types = set(map(type, values)) - {type(None)}
    if types <= _exact_types(kind) and not _may_be_too_large(made):
        return made
    for found, value in zip(made.to_pylist(), values):
        if not _agree(found, value):
            raise Inexact(f"it would become {found!r}")
    return made


def exact_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column as one of another type. Raises Inexact, with the value, if one would change.

    >>> exact_cast(pa.chunked_array([[0.5, 0.25]]), pa.float32()).type
    DataType(float)
    """
    try:
        made = column.cast(kind)
        if made.cast(column.type).equals(column):
            return made
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass  # some values may be the same nevertheless: Arrow casts no bool to a decimal
    values = []
    for scalar in column:
        try:
            value = scalar.as_py()
            found = _converted(value, column.type, kind)
        except (pa.ArrowException, ValueError, TypeError):
            raise Inexact(f"it has no value for {scalar}") from None
        if not _is_same(found, value):
            raise Inexact(f"{scalar} would become {found}")
        values.append(found)
    try:
        return pa.chunked_array([pa.array(values, kind)])
    except pa.ArrowException as error:  # too many values for the index of a dictionary
        raise Inexact(str(error)) from None


def _converted(value: Any, old: pa.DataType, new: pa.DataType) -> Any:
    if isinstance(value, Decimal) and pa.types.is_floating(new):
        value, old = float(value), pa.float64()  # Arrow makes 0.5000000000000001 of 0.5
    try:
        return pa.array([value], old).cast(new)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([value], new)[0].as_py()


def _is_same(found: Any, value: Any) -> bool:
    """Whether two values of columns are equal. NaN equals NaN."""
    if isinstance(found, list | tuple) and isinstance(value, list | tuple):
        return len(found) == len(value) and all(map(_is_same, found, value))
    if isinstance(found, dict) and isinstance(value, dict):
        return found.keys() == value.keys() and all(_is_same(found[n], value[n]) for n in found)
    return bool(found == value or (found != found and value != value))


def _exact_types(kind: pa.DataType) -> frozenset[type]:
    """The types of Python values that never change in an array of this type."""
    return next((types for is_kind, types in _EXACT if is_kind(kind)), frozenset())


def _may_be_too_large(made: pa.Array) -> bool:
    """Whether there are infinite floats of a type that does not hold all finite ones."""
    if not pa.types.is_floating(made.type) or pa.types.is_float64(made.type):
        return False
    return bool(np.isinf(made.to_numpy(zero_copy_only=False)).any())


def _is_fine(unit: str) -> bool:
    return unit in ("us", "ns")


_EXACT: Final[list[tuple[Callable[[pa.DataType], bool], frozenset[type]]]] = [
    (pa.types.is_integer, frozenset({int})),
    (pa.types.is_floating, frozenset({int, float})),
    (pa.types.is_boolean, frozenset({bool})),
    (pa.types.is_string, frozenset({str})),
    (pa.types.is_large_string, frozenset({str})),
    (pa.types.is_binary, frozenset({bytes})),
    (pa.types.is_large_binary, frozenset({bytes})),
    (pa.types.is_decimal, frozenset({Decimal, int})),
    (pa.types.is_date, frozenset({datetime.date})),
    (
        lambda kind: pa.types.is_duration(kind) and _is_fine(kind.unit),
        frozenset({datetime.timedelta}),
    ),
    (lambda kind: pa.types.is_time(kind) and _is_fine(kind.unit), frozenset({datetime.time})),
]


def _agree(found: Any, value: Any) -> bool:
    """Whether what an array has is what was given."""
    if found is None or value is None:
        return found is None and (value is None or value != value)  # NaT and NaN of pandas
    if isinstance(found, dict):
        return (
            isinstance(value, dict)
            and value.keys() <= found.keys()
            and all(_agree(each, value.get(name)) for name, each in found.items())
        )
    if isinstance(found, list):
        given = list(value.items() if isinstance(value, dict) else value)
        return len(found) == len(given) and all(map(_agree, found, given))
    if isinstance(found, tuple):
        return len(found) == len(value) and all(map(_agree, found, value))
    if isinstance(found, float) and math.isnan(found):
        return bool(value != value)
    if isinstance(found, float) and isinstance(value, (float, np.floating)):
        return math.isinf(found) == math.isinf(value)
    return bool(found == value)
