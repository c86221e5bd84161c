"""Kinds: which type of Parquet column holds given Python values, and which holds the values of two.

The kind of some values depends on the values alone, not on how they are divided or ordered:
`kind_of(a + b) == unite(kind_of(a), kind_of(b))`. So any number of writers find one schema. That is
why types are not left to Arrow's own inference, whose answer depends on the values' order.
"""

from __future__ import annotations

import datetime
import decimal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from pyrite.functions import shorten

Kind = Any
"""One of the classes below."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Of None, and of no values at all."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True, slots=True)
class Scalar:
    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Number:
    """Of Decimals, by the most digits before and after the point."""

    digits: int
    scale: int

    def __str__(self) -> str:
        return "Decimal"


@dataclass(frozen=True, slots=True)
class ListOf:
    element: Kind

    def __str__(self) -> str:
        return f"list of {self.element}"


@dataclass(frozen=True, slots=True)
class Fields:
    """Of dicts. `order` is that of the fields in every dict, or None if they differ."""

    kinds: Mapping[str, Kind]
    order: tuple[str, ...] | None

    @property
    def names(self) -> Sequence[str]:
        return self.order if self.order is not None else sorted(self.kinds)

    def __str__(self) -> str:
        return f"dict with {', '.join(self.names)}"


class CannotUnite(Exception):
    """No column can hold values of both kinds. `path` leads to the field."""

    def __init__(self, path: tuple[str, ...], one: Kind, two: Kind) -> None:
        super().__init__(path, one, two)
        self.path, self.one, self.two = path, one, two


class CannotStore(Exception):
    """No column can hold a value. `path` leads to the field, the text says why."""

    def __init__(self, path: tuple[str, ...], why: str) -> None:
        super().__init__(why)
        self.path = path


NOTHING = Nothing()
NO_FIELDS = Fields({}, ())
BOOL = Scalar("bool", pa.bool_())
INT = Scalar("int", pa.int64())
FLOAT = Scalar("float", pa.float64())
STR = Scalar("str", pa.string())
BYTES = Scalar("bytes", pa.binary())
DATE = Scalar("date", pa.date32())
NAIVE = Scalar("datetime without a time zone", pa.timestamp("us"))
AWARE = Scalar("datetime with a time zone", pa.timestamp("us", "UTC"))
TIME = Scalar("time", pa.time64("us"))
DURATION = Scalar("timedelta", pa.duration("us"))
_MOST_DIGITS = 76


def unite(one: Kind, two: Kind, path: tuple[str, ...] = ()) -> Kind:
    """The kind of the values of both. Raises CannotUnite.

    >>> str(unite(INT, FLOAT))
    'float'
    """
    if one == two or two == NOTHING:
        return one
    if one == NOTHING:
        return two
    if {one, two} == {INT, FLOAT} if isinstance(one, Scalar) and isinstance(two, Scalar) else False:
        return FLOAT
    if isinstance(one, Number) and isinstance(two, Number):
        both = Number(max(one.digits, two.digits), max(one.scale, two.scale))
        if both.digits + both.scale <= _MOST_DIGITS:
            return both
    if isinstance(one, ListOf) and isinstance(two, ListOf):
        return ListOf(unite(one.element, two.element, (*path, "[]")))
    if isinstance(one, Fields) and isinstance(two, Fields):
        return _united_fields(one, two, path)
    raise CannotUnite(path, one, two)


def _united_fields(one: Fields, two: Fields, path: tuple[str, ...]) -> Fields:
    if not one.kinds or not two.kinds:
        return one if one.kinds else two
    kinds = {
        name: unite(one.kinds.get(name, NOTHING), two.kinds.get(name, NOTHING), (*path, name))
        for name in one.kinds.keys() | two.kinds.keys()
    }
    return Fields(kinds, one.order if one.order == two.order else None)


def kind_of(values: Iterable[Any], path: tuple[str, ...] = ()) -> Kind:
    """Raises CannotUnite or CannotStore."""
    kind: Kind = NOTHING
    values = values if isinstance(values, Sequence) else list(values)
    classes = set(map(type, values))
    classes.discard(type(None))
    for cls in classes:
        found = next((_KINDS[base] for base in cls.__mro__ if base in _KINDS), _kind_by_arrow)
        if not isinstance(found, Scalar):
            found = found(
                values if len(classes) == 1 else [v for v in values if type(v) is cls], path
            )
        kind = unite(kind, found, path)
    return kind


def fields_of(dicts: Sequence[Mapping[str, Any]], path: tuple[str, ...] = ()) -> Fields:
    """The fields of rows. Raises CannotUnite or CannotStore."""
    return fields_and_columns(dicts, path)[0]


def fields_and_columns(
    dicts: Sequence[Mapping[str, Any]], path: tuple[str, ...] = ()
) -> tuple[Fields, dict[str, list[Any]]]:
    """The fields of rows, and their values by field: None where a row has no such field. Raises
    CannotUnite or CannotStore."""
    orders = set(map(tuple, dicts))
    if len(orders) == 1:  # nearly always, and faster
        columns = {name: [each[name] for each in dicts] for name in next(iter(orders))}
    else:
        names = dict.fromkeys(chain.from_iterable(orders))
        columns = {name: [each.get(name) for each in dicts] for name in names}
    for name in columns:
        if not isinstance(name, str):
            raise CannotStore(path, f"the names of fields must be strings, not {shorten(name)}")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise CannotStore(path, f"{name!a} is half of a surrogate pair, not a name") from None
    kinds = {name: kind_of(column, (*path, name)) for name, column in columns.items()}
    orders.discard(())
    return Fields(kinds, next(iter(orders), ()) if len(orders) < 2 else None), columns


def arrow_type(kind: Kind) -> pa.DataType:
    match kind:
        case Scalar():
            return kind.type
        case Number(digits, scale):
            make = pa.decimal128 if digits + scale <= 38 else pa.decimal256
            return make(max(digits + scale, 1), scale)
        case ListOf(element):
            return pa.list_(arrow_type(element))
        case Fields():
            return pa.struct([(name, arrow_type(kind.kinds[name])) for name in kind.names])
    return pa.null()


def arrow_schema(fields: Fields) -> pa.Schema:
    return pa.schema([(name, arrow_type(fields.kinds[name])) for name in fields.names])


def _kind_of_lists(lists: Sequence[Any], path: tuple[str, ...]) -> Kind:
    present = (each for each in lists if each is not None)
    return ListOf(kind_of(chain.from_iterable(present), (*path, "[]")))


def _kind_of_dicts(dicts: Sequence[Any], path: tuple[str, ...]) -> Kind:
    present = [each for each in dicts if each is not None]
    if not all(present):
        raise CannotStore(path, "it is an empty dict, and a Parquet struct has at least one field")
    return fields_of(present, path)


def _kind_of_datetimes(values: Sequence[Any], path: tuple[str, ...]) -> Kind:
    naive = {each.tzinfo is None for each in values if each is not None}
    if len(naive) == 2:
        raise CannotUnite(path, NAIVE, AWARE)
    return NAIVE if naive == {True} else AWARE


def _kind_of_decimals(values: Sequence[Any], path: tuple[str, ...]) -> Kind:
    most, scale = 0, 0
    for each in values:
        if each is not None:
            _, digits, exponent = each.as_tuple()
            if not isinstance(exponent, int):
                raise CannotStore(path, f"it is {each}, and Parquet has finite decimals only")
            most = max(most, len(digits) + exponent)
            scale = max(scale, -exponent)
    if most + scale > _MOST_DIGITS:
        raise CannotStore(path, f"decimals may have {_MOST_DIGITS} digits at most")
    return Number(most, scale)


def _kind_by_arrow(values: Sequence[Any], path: tuple[str, ...]) -> Kind:
    """Of values of a class that is not in the table, such as a NumPy scalar."""
    kind: Kind = NOTHING
    numpy = sys.modules.get("numpy")
    for value in values:
        if value is None:
            continue
        if numpy is not None and isinstance(value, numpy.ndarray):
            kind = unite(kind, ListOf(kind_of(value.tolist(), (*path, "[]"))), path)
            continue
        try:
            type = pa.infer_type([value])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise CannotStore(path, f"Parquet cannot store {shorten(value)}") from None
        if pa.types.is_integer(type):
            found = INT
        elif pa.types.is_floating(type):
            found = FLOAT
        else:
            found = BOOL if type == BOOL.type else Scalar(f"{type}", type)
        kind = unite(kind, found, path)
        if numpy is not None and isinstance(value, (numpy.number, numpy.bool_)):
            return kind  # all are of one class, whose values are all alike
    return kind


_KINDS: Mapping[type, Scalar | Callable[[Sequence[Any], tuple[str, ...]], Kind]] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    bytes: BYTES,
    bytearray: BYTES,
    datetime.date: DATE,
    datetime.datetime: _kind_of_datetimes,
    datetime.time: TIME,
    datetime.timedelta: DURATION,
    decimal.Decimal: _kind_of_decimals,
    list: _kind_of_lists,
    tuple: _kind_of_lists,
    set: _kind_of_lists,
    frozenset: _kind_of_lists,
    dict: _kind_of_dicts,
}
