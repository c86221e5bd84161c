"""The field that an entry of a map is stored under: the same bytes for equal keys, and different
bytes for keys that differ. Pure.

`pyrite.partitioning` decides which keys are possible, and has the bytes of keys without parts; the
bytes of its numbers, strings and tuples may be the same for keys that differ, so these are written
in full here.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Hashable
from decimal import Decimal
from numbers import Number
from typing import Any, Final

from pyrite.collections.stored.values import CannotStore
from pyrite.functions import describe, shorten
from pyrite.keys import is_compared_by_fields
from pyrite.partitioning import InvalidKey, canonical_bytes

LARGEST_EXPONENT: Final = 10_000
"""Of a Decimal. It is written as a fraction, since it may equal one."""


def field_of(key: Any) -> bytes:
    """The field for a key. Raises TypeError if the key is not hashable, as a dict does.

    >>> field_of(1) == field_of(1.0) == field_of(True)
    True
    """
    kind = type(key)
    if kind is str:
        return b"s" + key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return b"n%x" % key
    hash(key)
    encode = _ENCODERS.get(kind)
    if encode is None:
        try:
            canonical_bytes(key)
        except InvalidKey:
            raise _refused(key) from None
        encode = _ENCODERS[kind] = _encoder_of(kind)
    return encode(key)


def _encoder_of(kind: type[Hashable]) -> Callable[[Any], bytes]:
    """Values of a subclass, such as an IntEnum or a named tuple, equal values of its base class."""
    if kind.__module__ == "numpy" and not issubclass(kind, (str, bytes)):
        return _numpy
    for known, encode in _KINDS:
        if issubclass(kind, known):
            return encode
    return _dataclass if is_compared_by_fields(kind) else _whole


def _numpy(key: Any) -> bytes:
    value = key.item()
    # item() of a longdouble returns a longdouble.
    return field_of(value) if type(value) is not type(key) else _number(key)


def _number(key: Any) -> bytes:
    if key != key:
        return b"nan"
    if isinstance(key, complex):
        if key.imag:
            return b"j" + _joined([_number(key.real), _number(key.imag)])
        key = key.real
    if isinstance(key, Decimal) and key.is_finite() and abs(key.adjusted()) > LARGEST_EXPONENT:
        raise _refused(key)
    try:
        numerator, denominator = key.as_integer_ratio()
    except OverflowError:
        return b"n+inf" if key > 0 else b"n-inf"
    except AttributeError:
        raise _refused(key) from None
    return b"n%x" % numerator if denominator == 1 else b"n%x/%x" % (numerator, denominator)


def _tuple(key: tuple[Any, ...]) -> bytes:
    return b"t" + _joined([field_of(part) for part in key])


def _set(key: frozenset[Any]) -> bytes:
    return b"f" + _joined(sorted({field_of(part) for part in key}))  # NaN counts once


def _dataclass(key: Any) -> bytes:
    name = f"{type(key).__module__}.{type(key).__qualname__}".encode()
    parts = [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare]
    return b"c" + _joined([name, *map(field_of, parts)])


def _whole(key: Any) -> bytes:
    if key != key:  # NaT of pandas, for example
        return b"?" + describe(type(key)).encode()
    return b"o" + canonical_bytes(key)


def _moment(key: Any) -> bytes:
    """pandas has nanoseconds, which the classes that it derives its own from do not have."""
    nanoseconds = getattr(key, "nanosecond", 0) or getattr(key, "nanoseconds", 0)
    return _whole(key) + (b".%d" % nanoseconds if nanoseconds and key == key else b"")


def _joined(parts: list[bytes]) -> bytes:
    """With its length before each, so that no two lists of parts give the same bytes."""
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


def _refused(key: Any) -> CannotStore:
    return CannotStore(
        f"{shorten(key)} cannot be a key of a stored map: Pyrite cannot tell from a "
        f"{describe(type(key))} alone which other keys equal it. Use a string, a number, bytes, a "
        "date, an enum, a frozen dataclass, or a tuple of these"
    )


_KINDS: Final[list[tuple[type, Callable[[Any], bytes]]]] = [
    (Number, _number),
    (str, lambda key: b"s" + str.encode(key, "utf-8", "surrogatepass")),
    (tuple, _tuple),
    (frozenset, _set),
    (datetime.datetime, _moment),
    (datetime.timedelta, _moment),
]
_ENCODERS: dict[type, Callable[[Any], bytes]] = {}
