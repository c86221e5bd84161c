"""Keys of groups and of named maps: NaN is one key, as in Spark SQL, pandas and Polars.

In Python two NaNs are not equal, so a dict keeps each NaN object as a key of its own. `one_nan`
maps all NaNs to the same object, which a dict finds by identity.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import uuid
from collections.abc import Iterable
from enum import Enum
from numbers import Number
from typing import Any, Final

NAN: Final = float("nan")

NAN_FREE: Final = frozenset(
    {
        *(str, int, bytes, bool, type(None), type(...), type),
        *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID),
    }
)
"""Types whose values are not NaN and contain no NaN."""


def one_nan(key: Any) -> Any:
    """The key to store for `key`: the key itself, unless it is a NaN or contains one.

    >>> one_nan(float("nan")) is one_nan(float("nan"))
    True
    >>> len({one_nan(("a", float("nan"))), one_nan(("a", float("nan")))})
    1
    """
    kind = type(key)
    if kind in NAN_FREE:
        return key
    if kind is float:
        return key if key == key else NAN
    if isinstance(key, tuple):
        return _tuple(key)
    if isinstance(key, frozenset):
        parts = {one_nan(part) for part in key}
        return key if all(part in key for part in parts) and len(parts) == len(key) else kind(parts)
    if isinstance(key, Enum):
        return key
    if is_compared_by_fields(kind):
        return _dataclass(key)
    try:
        if key == key:
            return key
    except Exception:  # an array, or pandas.NA: its own rules decide what is equal
        return key
    return NAN if isinstance(key, Number) else _NOT_EQUAL_TO_THEMSELVES.setdefault(kind, key)


def is_compared_by_fields(kind: type) -> bool:
    """Whether a class is a dataclass whose == is the one that dataclasses write."""
    code = getattr(kind.__eq__, "__code__", None)
    return dataclasses.is_dataclass(kind) and getattr(code, "co_filename", "") == "<string>"


def with_one_nan(pairs: dict[Any, Any]) -> dict[Any, Any]:
    """The same pairs, under the keys to store; the dict itself if there is nothing to change."""
    if NAN_FREE.issuperset(map(type, pairs)):
        return pairs
    return {one_nan(key): value for key, value in pairs.items()}


_NOT_EQUAL_TO_THEMSELVES: dict[type, Any] = {}
"""By type, the one that stands for all: numpy's and pandas' NaT."""


def _tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    if NAN_FREE.issuperset(map(type, key)):
        return key
    parts = [one_nan(part) for part in key]
    if _same_objects(parts, key):
        return key
    kind: Any = type(key)
    if kind is tuple:
        return tuple(parts)
    return kind._make(parts) if hasattr(kind, "_make") else key  # a named tuple, or unknown


def _dataclass(key: Any) -> Any:
    names = [field.name for field in dataclasses.fields(key) if field.compare]
    values = [getattr(key, name) for name in names]
    parts = [one_nan(value) for value in values]
    if _same_objects(parts, values):
        return key
    new = copy.copy(key)
    for name, part in zip(names, parts):
        object.__setattr__(new, name, part)
    return new


def _same_objects(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return all(x is y for x, y in zip(a, b))
