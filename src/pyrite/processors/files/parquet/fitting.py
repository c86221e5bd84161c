"""Whether values fit the type that a given schema has for them. Arrow itself would cut some values
to fit: 1.5 to the int 1, a datetime to its date, a dict to the fields that the struct has.

A value fits if what is read back equals it. Only a float may be rounded to the precision of its
column, because that is what a column of 32 bits is for.
"""

from __future__ import annotations

import datetime
import decimal
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyrite.functions import shorten
from pyrite.processors.files.parquet.kinds import CannotStore

Path = tuple[str, ...]


def check_fits(values: Sequence[Any], field: pa.Field, path: Path) -> None:
    """Raises CannotStore if a value does not fit a field."""
    classes = set(map(type, values))
    if type(None) in classes:
        if not field.nullable:
            raise CannotStore(path, "it is None, and the schema says that it is not null")
        classes.discard(type(None))
        values = [each for each in values if each is not None]
    if not classes:
        return
    check_nested = next((check for is_one, check in _NESTED if is_one(field.type)), None)
    if check_nested is not None:
        check_nested(values, field.type, path)
        return
    if pa.types.is_timestamp(field.type) or pa.types.is_time(field.type):
        _check_zones(values, field.type, path)
    if not classes <= _exact_classes(field.type):
        _check_read_back(values, field.type, path)


def _exact_classes(column: pa.DataType) -> set[type]:
    """The classes whose values Arrow stores exactly in a column, or refuses by itself; except for
    time zones."""
    for is_one, classes in _EXACT:
        if is_one(column):
            return classes
    return set()


def _check_read_back(values: Sequence[Any], column: pa.DataType, path: Path) -> None:
    try:
        array = pa.array(values, type=column)
        are_floats = column == pa.float32() and set(map(type, values)) <= {int, float}
        if are_floats and not pc.any(pc.is_inf(array)).as_py():
            return  # faster than to look at each value
        back = array.to_pylist()
        bad = next(((b, v) for b, v in zip(back, values) if not _is_same(b, v)), None)
    except Exception as error:
        raise CannotStore(path, str(error)) from error
    if bad is not None:
        raise CannotStore(
            path,
            f"the schema says {column}, which would make {shorten(bad[0])} of {shorten(bad[1])}",
        )


def _is_same(stored: Any, value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.datetime64):
        return getattr(stored, "tzinfo", None) is None and numpy.datetime64(stored) == value
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(stored, bool) != isinstance(value, bool):
        return False
    if isinstance(stored, float) and isinstance(value, float):
        return math.isfinite(stored) == math.isfinite(value)
    return bool(stored == value)


def _check_zones(values: Sequence[Any], column: pa.DataType, path: Path) -> None:
    has_zone = pa.types.is_timestamp(column) and column.tz is not None
    for value in values:
        if (getattr(value, "tzinfo", None) is not None) != has_zone:
            with_it, without = ("no", "one") if has_zone else ("a", "none")
            raise CannotStore(
                path, f"it has {with_it} time zone, and the schema, which says {column}, {without}"
            )


def _check_structs(values: Sequence[Any], column: pa.DataType, path: Path) -> None:
    fields = {field.name: field for field in column}
    for value in values:
        if not isinstance(value, dict):
            raise CannotStore(path, f"the schema says {column}, and it is {shorten(value)}")
        for name in value:
            if name not in fields:
                raise CannotStore((*path, str(name)), "the schema has no such field")
    for name, field in fields.items():
        check_fits([value.get(name) for value in values], field, (*path, name))


def _check_lists(values: Sequence[Any], column: pa.DataType, path: Path) -> None:
    numpy = sys.modules.get("numpy")
    for value in values:
        if not isinstance(value, (list, tuple, set, frozenset)) and (
            numpy is None or not isinstance(value, numpy.ndarray)
        ):
            raise CannotStore(path, f"the schema says {column}, and it is {shorten(value)}")
    elements = list(chain.from_iterable(values))
    check_fits(elements, column.value_field, (*path, "[]"))


def _check_maps(values: Sequence[Any], column: pa.DataType, path: Path) -> None:
    try:
        pairs = [
            (key, item)
            for value in values
            for key, item in (value.items() if isinstance(value, Mapping) else value)
        ]
    except (TypeError, ValueError):
        raise CannotStore(path, f"the schema says {column}, and it is no dict") from None
    check_fits([key for key, _ in pairs], column.key_field, (*path, "{}"))
    check_fits([item for _, item in pairs], column.item_field, (*path, "{}"))


def _is_one_of(*columns: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda column: column in columns


def _is_any_list(column: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(column) or types.is_large_list(column) or types.is_fixed_size_list(column)
    )


def _is_timestamp_in_us(column: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(column)) and column.unit == "us"


_NESTED: Sequence[tuple[Callable[[Any], bool], Callable[[Sequence[Any], Any, Path], None]]] = (
    (pa.types.is_struct, _check_structs),
    (pa.types.is_map, _check_maps),
    (_is_any_list, _check_lists),
)
_EXACT: Sequence[tuple[Callable[[Any], bool], set[type]]] = (
    (pa.types.is_integer, {int}),
    (_is_one_of(pa.float64()), {int, float}),
    (_is_one_of(pa.string(), pa.large_string()), {str}),
    (_is_one_of(pa.binary(), pa.large_binary()), {bytes, bytearray}),
    (pa.types.is_boolean, {bool}),
    (pa.types.is_decimal, {int, decimal.Decimal}),
    (pa.types.is_date, {datetime.date}),
    (_is_timestamp_in_us, {datetime.datetime}),
    (_is_one_of(pa.time64("us")), {datetime.time}),
    (_is_one_of(pa.duration("us")), {datetime.timedelta}),
)
