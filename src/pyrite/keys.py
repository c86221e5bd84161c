"""Keys of groups and named maps: all NaNs are one key, as in Spark SQL, pandas and Polars.

In Python two NaNs are not equal, so a dict keeps each NaN object as a separate key. `one_nan` maps
all NaNs to the same object, which a dict finds by identity.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import sys
import threading
import uuid
import weakref
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
    """The key to store in place of `key`: the key itself, unless it is or contains a NaN.

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
    except Exception:  # == gives no single answer, as for an array or pandas.NA
        return key
    is_time = kind.__name__ == "timedelta64"  # numpy takes it for a number
    if isinstance(key, Number) and not is_time:
        return NAN
    return _NOT_EQUAL_TO_THEMSELVES.setdefault(kind, key)


def is_compared_by_fields(kind: type) -> bool:
    """Whether a class is a dataclass whose == is the one that dataclasses write."""
    code = getattr(kind.__eq__, "__code__", None)
    return dataclasses.is_dataclass(kind) and getattr(code, "co_filename", "") == "<string>"


def with_one_nan(pairs: dict[Any, Any]) -> dict[Any, Any]:
    """The same pairs with `one_nan(key)` as keys. Returns the dict itself if no key changes."""
    if NAN_FREE.issuperset(map(type, pairs)):
        return pairs
    return {one_nan(key): value for key, value in pairs.items()}


_NOT_EQUAL_TO_THEMSELVES: dict[type, Any] = {}
"""By type, the value that stands for all values that are not equal to themselves, such as NaT."""


def _tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    if NAN_FREE.issuperset(map(type, key)):
        return key
    parts = [one_nan(part) for part in key]
    if _same_objects(parts, key):
        return key
    kind: Any = type(key)
    if kind is tuple:
        return tuple(parts)
    return kind._make(parts) if hasattr(kind, "_make") else key  # a named tuple has _make


def _dataclass(key: Any) -> Any:
    names = [field.name for field in dataclasses.fields(key) if field.compare]
    values = [getattr(key, name) for name in names]
    parts = [one_nan(value) for value in values]
    if _same_objects(parts, values):
        new = key
    else:
        new = copy.copy(key)
        for name, part in zip(names, parts):
            object.__setattr__(new, name, part)
    if _COMPARES_FIELDS_BY_VALUE and any(map(_differs_from_itself, parts)):
        return _the_only(new, (type(key), *parts))
    return new


def _differs_from_itself(part: Any) -> bool:
    try:
        return bool(part != part)
    except Exception:  # == gives no single answer
        return False


_COMPARES_FIELDS_BY_VALUE: Final = sys.version_info >= (3, 13)
"""Up to Python 3.12, == of dataclasses compares tuples of the fields, which takes the same NaN
object for equal. Since 3.13 it compares each field by ==, so that two dataclasses with the same NaN
object are not equal, and only the same dataclass object can be the same key."""

_only: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
_only_without_weak_references: dict[tuple[Any, ...], Any] = {}
_only_lock = threading.Lock()


def _the_only(key: Any, parts: tuple[Any, ...]) -> Any:
    """The object that stands for all keys with these parts, as long as anything refers to it."""
    with _only_lock:
        try:
            return _only.setdefault(parts, key)
        except TypeError:  # a class with __slots__ may not support weak references
            return _only_without_weak_references.setdefault(parts, key)


def _same_objects(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return all(x is y for x, y in zip(a, b))
