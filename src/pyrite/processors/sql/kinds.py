"""The types of columns: which values fit, and how SQLite keeps what it has no type for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from sqlalchemy import Dialect, types
from sqlalchemy.types import TypeDecorator, TypeEngine

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten

_BYTES = frozenset({bytes, bytearray, memoryview})
_OF_PYTHON: Mapping[Any, TypeEngine[Any]] = {
    bool: types.Boolean(),
    int: types.BigInteger(),
    float: types.Double(),
    str: types.Text(),
    bytes: types.LargeBinary(),
    date: types.Date(),
    datetime: types.DateTime(timezone=True),
    time: types.Time(),
    Decimal: types.Numeric(),
    uuid.UUID: types.Uuid(),
    dict: types.JSON(none_as_null=True),
    list: types.JSON(none_as_null=True),
}


class ZonedText(TypeDecorator[datetime]):
    """A datetime in SQLite, as ISO 8601 text with its zone, if it has one."""

    impl = types.DATETIME
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        return lambda value: None if value is None else value.isoformat(" ")

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        def parsed(value: Any) -> Any:
            return datetime.fromisoformat(value) if isinstance(value, str) else value

        return parsed


class DecimalNumber(TypeDecorator[Decimal]):
    """A Decimal in SQLite, which keeps it as a whole or a floating-point number."""

    impl = types.NUMERIC
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        return _for_sqlite

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        def made(value: Any) -> Any:
            try:
                return Decimal(str(value)) if value is not None else None
            except InvalidOperation:  # SQLite keeps any value in any column
                return value

        return made


class FloatNumber(TypeDecorator[float]):
    """A float in SQLite, which would keep NaN as NULL."""

    impl = types.Double
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        return lambda value: None if value is None else float(_not_nan(value))

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return None


class HexText(TypeDecorator[Any]):
    """A UUID in SQLite: 32 hexadecimal digits, which are read as a str. Such a column of a table
    that exists may have any other texts as well."""

    impl = types.CHAR
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(32)

    def bind_processor(self, dialect: Dialect) -> Any:
        return lambda value: value.hex if isinstance(value, uuid.UUID) else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return None


def _not_nan(value: Any) -> Any:
    if value != value:
        raise ValueError("SQLite would keep NaN as NULL; write None, or leave the item out")
    return value


def _for_sqlite(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return _not_nan(value)
    kept = float(value)
    if Decimal(repr(kept)) != value:
        raise ValueError(
            f"SQLite keeps decimals as floating-point numbers, and so {value} as {kept!r}; write "
            "it to a column of type TEXT, as str"
        )
    return int(value) if kept.is_integer() and abs(kept) < 2**53 else kept


def kept_type(type: TypeEngine[Any], dialect: str) -> TypeEngine[Any]:
    """The type of a column with which values are read and written."""
    if isinstance(type, types.JSON):
        type.none_as_null = True  # None is NULL, as in all other columns
    if dialect == "sqlite" and isinstance(type, types.DateTime):
        return ZonedText()
    if dialect == "sqlite" and isinstance(type, types.Float):
        return FloatNumber()
    if dialect == "sqlite" and isinstance(type, types.Numeric):
        return DecimalNumber()
    if dialect == "sqlite" and _is_for_uuids(type):
        return HexText()
    return type


def type_of(python: Any, column: str) -> tuple[TypeEngine[Any], bool]:
    """The type of a column that is made for values of a Python type; and whether None fits."""
    named = python
    optional = False
    if get_origin(python) in (Union, UnionType):
        rest = [each for each in get_args(python) if each is not NoneType]
        optional = len(rest) < len(get_args(python))
        named = rest[0] if len(rest) == 1 else python
    plain = get_origin(named) or named
    if isinstance(named, TypeEngine):
        return named, True
    if isinstance(named, type) and issubclass(named, TypeEngine):
        return named(), True
    found = _OF_PYTHON.get(plain)
    if found is None:
        names = ", ".join(each.__name__ for each in _OF_PYTHON)
        raise InvalidDAG(
            f"create of write_sql() gives column '{column}' the type {shorten(python)}; it must be "
            f"one of {names}, such a type | None, or a type of SQLAlchemy"
        )
    return found, optional


def misfit(type: TypeEngine[Any], value: Any) -> str:
    """Why a value does not fit into a column; empty if it does, or if the database must say. None
    is not looked at. Databases would change some of these values without a word."""
    allowed = allowed_types(type)
    if allowed is not None and value.__class__ not in allowed:
        # A subclass is fine, except that a bool is no number and a datetime no date.
        bases = tuple(allowed - {bool})
        is_other = isinstance(value, bool) or (
            isinstance(value, datetime) and datetime not in allowed
        )
        if is_other or not isinstance(value, bases):
            return f"it takes {_listed(allowed)}, not {value.__class__.__name__}"
    if isinstance(type, _FLOATS) and not isinstance(value, float):
        return _misfit_of_float(value)
    if isinstance(type, types.DateTime | types.Time):
        zoned = value.tzinfo is not None
        if zoned and not type.timezone:
            return "its type has no time zone, but the value has one; remove it, or change the type"
        if not zoned and type.timezone:
            return "its type has a time zone, but the value has none; add one: tzinfo=timezone.utc"
    return ""


def sure_types(type: TypeEngine[Any]) -> frozenset[Any]:
    """The Python types all of whose values fit."""
    if isinstance(type, types.DateTime | types.Time):
        return frozenset()  # whether it has a zone must be looked at
    if isinstance(type, _FLOATS):
        return frozenset({float})
    return allowed_types(type) or frozenset()


def allowed_types(type: TypeEngine[Any]) -> frozenset[Any] | None:
    """The Python types whose values may fit; None if only the database knows."""
    for kind, allowed in _ALLOWED:
        if isinstance(type, kind):
            return allowed
    return None


def _misfit_of_float(value: int | Decimal) -> str:
    try:
        kept = float(value)
    except OverflowError:
        return "no float is so large"
    if kept == value or Decimal(repr(kept)) == value:
        return ""
    return f"it keeps floats, and so {kept!r}; round it before, or change the type"


_FLOATS = (types.Float, FloatNumber)
_ALLOWED: list[tuple[Any, frozenset[Any]]] = [
    (types.Boolean, frozenset({bool})),
    (types.Integer, frozenset({int})),
    (_FLOATS, frozenset({float, int, Decimal})),
    ((types.Numeric, DecimalNumber), frozenset({Decimal, int, float})),
    ((types.DateTime, ZonedText), frozenset({datetime})),
    (types.Date, frozenset({date})),
    (types.Time, frozenset({time})),
    (types.LargeBinary, _BYTES),
    (types.Enum, frozenset({str})),
    (HexText, frozenset({str, uuid.UUID})),
    (types.String, frozenset({str})),
]


def _is_for_uuids(type: TypeEngine[Any]) -> bool:
    return isinstance(type, types.Uuid) or (isinstance(type, types.CHAR) and type.length == 32)


def _listed(allowed: frozenset[Any]) -> str:
    return " or ".join(sorted(each.__name__ for each in allowed))
