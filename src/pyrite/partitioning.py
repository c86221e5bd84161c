"""From a key to a partition id, the same in every process, on every member, whatever PYTHONHASHSEED
is.

Keys that are equal in Python have the same id: 1, 1.0, True and Decimal(1); a tuple and a named
tuple; one moment in two time zones. The way there: the key in canonical bytes, their Murmur3 hash
(x86, 32 bit), modulo the number of partitions.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import operator
import struct
from collections.abc import Callable
from enum import Enum, Flag
from numbers import Number
from pathlib import PurePath, PureWindowsPath
from typing import Any
from uuid import UUID

import mmh3

from pyrite.errors import PyriteError
from pyrite.functions import describe, shorten
from pyrite.keys import is_compared_by_fields

PARTITION_COUNT = 271
"""How many partitions a job has, unless it has many members or says otherwise."""
PARTITIONS_PER_MEMBER = 4

_CACHE_LIMIT = 1 << 16
_HASHED = struct.Struct("<cq")
_pack_hash = _HASHED.pack


class InvalidKey(PyriteError, ValueError):
    """A partition key that cannot be used: None, of a type without canonical bytes, or sent out of
    range."""


def partition_id(key: Any, partition_count: int = PARTITION_COUNT) -> int:
    """The partition that a key belongs to.

    >>> partition_id(1) == partition_id(1.0) == partition_id(True)
    True
    """
    return mmh3.hash(canonical_bytes(key), 0, signed=False) % partition_count


def default_partition_count(members: int) -> int:
    """How many partitions a job has on a number of members: 271, or the next prime above four per
    member, so that each member has its share of them.

    >>> default_partition_count(2), default_partition_count(67), default_partition_count(128)
    (271, 271, 521)
    """
    count = PARTITIONS_PER_MEMBER * members + 1
    if count <= PARTITION_COUNT:
        return PARTITION_COUNT
    while any(count % divisor == 0 for divisor in range(2, math.isqrt(count) + 1)):
        count += 1
    return count


def canonical_bytes(key: Any) -> bytes:
    """Bytes that are the same for equal keys. Those of a string are its UTF-8, which Murmur3 takes
    as it is; of other keys the first byte tells the kind, so that keys of two kinds differ."""
    kind = type(key)
    if kind is str:
        return key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return _pack_hash(b"n", hash(key))
    encode = _ENCODERS.get(kind)
    if encode is None:
        encode = _ENCODERS[kind] = _encoder_of(kind)
    return encode(key)


def partition_function(
    partition_count: int, *, partitioner: Callable[[Any, int], int] | None = None, edge: str
) -> Callable[[Any], int]:
    """A function from key to partition id for one edge; `edge` is its name, for messages.

    It keeps the ids of keys that it has met, as long as the same ones come again and again.
    """
    if partitioner is not None:
        return _custom(partition_count, partitioner, edge)
    hashed = mmh3.hash
    known: dict[Any, int] = {}
    room, asked = _CACHE_LIMIT, 0

    def partition(key: Any) -> int:
        nonlocal room, asked
        if type(key) is str:  # to look it up would take longer than to compute it
            # Murmur3's own way of encoding does not survive half a surrogate pair.
            return (
                hashed(key if key.isascii() else key.encode("utf-8", "surrogatepass"), 0, False)
                % partition_count
            )
        if not room:
            return _computed(key, partition_count, edge)
        asked += 1
        try:
            found = known.get(key)
        except TypeError:  # not hashable: a list, a dict
            return _computed(key, partition_count, edge)
        if found is None:
            found = known[key] = _computed(key, partition_count, edge)
            room -= 1
            if not room:
                known.clear()
                room = _CACHE_LIMIT if asked > 4 * _CACHE_LIMIT else 0
                asked = 0
        return found

    return partition


def _computed(key: Any, partition_count: int, edge: str) -> int:
    if key is None:
        raise none_key(edge)
    try:
        return partition_id(key, partition_count)
    except InvalidKey as error:
        raise InvalidKey(f"edge {edge}: {error}") from None


def none_key(edge: str) -> InvalidKey:
    return InvalidKey(
        f"the partition key of an item on edge {edge} is None, which belongs to no partition; "
        f"give the edge a key function that never returns None, or filter such items out before it"
    )


def _custom(
    partition_count: int, partitioner: Callable[[Any, int], int], edge: str
) -> Callable[[Any], int]:
    def partition(key: Any) -> int:
        if key is None:
            raise none_key(edge)
        found = partitioner(key, partition_count)
        try:
            number = operator.index(found)
        except TypeError:
            number = -1
        if not 0 <= number < partition_count:
            raise InvalidKey(
                f"return value of the partitioner {describe(partitioner)} of edge {edge} must be a "
                "whole number from 0 to "
                f"{partition_count - 1}; got {shorten(found)} for key {shorten(key)}"
            )
        return number

    return partition


def _encoder_of(kind: type) -> Callable[[Any], bytes]:
    """How keys of a type become bytes. A subclass (an IntEnum, a named tuple) equals its plain
    form, so it is encoded as that."""
    if kind.__module__ == "numpy":
        found = _numpy_encoder(kind)
        if found is not None:
            return found
    for known, encode in _KINDS:
        if issubclass(kind, known):
            if known in _OWN_EQUALITY and getattr(kind, "__eq__") is not getattr(known, "__eq__"):  # noqa: B009 mypy takes them for bound
                break  # it decides by itself which of its values are equal
            return encode
    else:
        if is_compared_by_fields(kind):
            return _dataclass
    if "__eq__" not in (name for each in kind.__mro__[:-1] for name in vars(each)):
        why = "two of them are equal only if they are the same object"
    else:
        why = "only its own == knows which of them are equal"
    return _refusal(kind, why)


def _refusal(kind: type, why: str) -> Callable[[Any], bytes]:
    message = (
        f"a {describe(kind)} cannot be a partition key: {why}. Give the edge a key function that "
        f"returns a string, a number, bytes, a date, an enum, a dataclass, or a tuple of these"
    )

    def refuse(key: Any) -> bytes:
        raise InvalidKey(message)

    return refuse


def _numpy_encoder(kind: type) -> Callable[[Any], bytes] | None:
    """How scalars of numpy's become bytes: as the Python value that they equal, if there is one."""
    if kind.__name__ == "ndarray":
        return _refusal(kind, "== of two arrays gives an array, not one answer")
    if not hasattr(kind, "item") or kind.__name__ in ("datetime64", "timedelta64"):
        return None

    def encode(key: Any) -> bytes:
        value = key.item()
        # A longdouble has no Python equal: item() gives it back. Its hash is that of equal numbers.
        return canonical_bytes(value) if type(value) is not kind else _number(key)

    return encode


def _number(key: Any) -> bytes:
    if key != key:  # NaN: its hash differs from object to object
        return b"nan"
    # Python gives equal numbers of all types one hash, which does not depend on PYTHONHASHSEED.
    return _pack_hash(b"n", hash(key))


def _sequence(tag: str) -> Callable[[Any], bytes]:
    """For tuples and lists: the parts as one text, which takes a third of the time that it takes to
    join them as bytes. Parts that differ may make the same text; equal parts always do."""

    def encode(key: Any) -> bytes:
        parts = [
            part if type(part) is str else f"\x1e{hash(part)}" if type(part) is int else _text(part)
            for part in key
        ]
        return (tag + "\x1f".join(parts)).encode("utf-8", "surrogatepass")

    return encode


def _text(key: Any) -> str:
    data = canonical_bytes(key)
    if isinstance(key, str):
        return data.decode("utf-8", "surrogatepass")
    if len(data) == _HASHED.size and data[:1] == b"n":  # a number, of whichever type
        return f"\x1e{_HASHED.unpack(data)[1]}"
    return data.decode("latin-1")


def _set(key: Any) -> bytes:
    return b"f" + _joined(sorted(canonical_bytes(part) for part in key))


def _dict(key: dict[Any, Any]) -> bytes:
    return b"d" + _joined(
        sorted(_joined([canonical_bytes(k), canonical_bytes(v)]) for k, v in key.items())
    )


def _joined(parts: list[bytes]) -> bytes:
    """The parts with the length of each before it, so that ('a', 'bc') and ('ab', 'c') differ."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def _datetime(key: datetime.datetime) -> bytes:
    if key != key:  # pandas' NaT
        return b"nan"
    # `fold` tells apart the two passes of the hour that a clock is set back over. Python's == and
    # hash ignore it, so its offset must be ignored, too.
    offset = key.replace(fold=0).utcoffset()
    if offset is None:
        return b"T" + key.replace(tzinfo=None, fold=0).isoformat().encode()
    since = datetime.timedelta(days=key.toordinal()) + _since_midnight(key)
    return b"U%d" % (_microseconds(since) - _microseconds(offset))


def _time(key: datetime.time) -> bytes:
    offset = key.replace(fold=0).utcoffset()
    if offset is None:
        return b"h" + key.replace(tzinfo=None, fold=0).isoformat().encode()
    return b"H" + _duration(_since_midnight(key) - offset)


def _since_midnight(key: datetime.datetime | datetime.time) -> datetime.timedelta:
    return datetime.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )


def _microseconds(key: datetime.timedelta) -> int:
    return key // datetime.timedelta(microseconds=1)


def _duration(key: datetime.timedelta) -> bytes:
    return b"D%d.%d.%d" % (key.days, key.seconds, key.microseconds)


def _enum(key: Enum) -> bytes:
    return b"e" + _joined(
        [_class_name(key), str(key.value if isinstance(key, Flag) else key.name).encode()]
    )


def _path(key: PurePath) -> bytes:
    if isinstance(key, PureWindowsPath):  # upper and lower case are the same there
        return b"w" + key.as_posix().lower().encode("utf-8", "surrogatepass")
    return b"p" + str(key).encode("utf-8", "surrogatepass")


def _dataclass(key: Any) -> bytes:
    fields = [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare]
    return b"c" + _joined([_class_name(key), *map(canonical_bytes, fields)])


def _class_name(key: Any) -> bytes:
    return f"{type(key).__module__}.{type(key).__qualname__}".encode()


# In the order of the checks: an IntEnum is a number before it is an enum, a datetime is a date.
_KINDS: list[tuple[type, Callable[[Any], bytes]]] = [
    (int, lambda key: _pack_hash(b"n", int.__hash__(key))),
    (Number, _number),
    (str, lambda key: str.encode(key, "utf-8", "surrogatepass")),
    (bytes, lambda key: b"b" + bytes(key)),
    (bytearray, lambda key: b"b" + bytes(key)),
    (tuple, _sequence("\x1dt")),
    (list, _sequence("\x1dl")),
    (frozenset, _set),
    (set, _set),
    (dict, _dict),
    (datetime.datetime, _datetime),
    (datetime.date, lambda key: b"a" + key.isoformat().encode()),
    (datetime.time, _time),
    (datetime.timedelta, _duration),
    (UUID, lambda key: b"u" + key.bytes),
    (Enum, _enum),
    (PurePath, _path),
    (type(None), lambda key: b"N"),
    (type(...), lambda key: b"..."),
]
_OWN_EQUALITY = {int, str, bytes, bytearray, tuple, list, frozenset, set, dict}
"""A subclass of these that defines == of its own is not encoded as what it derives from."""
_ENCODERS: dict[type, Callable[[Any], bytes]] = {}
