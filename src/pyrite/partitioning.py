"""Maps a key to a partition id. The id is the same in every process, whatever PYTHONHASHSEED is.

Keys that are equal in Python have the same id: 1, 1.0, True and Decimal(1); a tuple and a named
tuple; the same moment in two time zones. The id is the Murmur3 hash (x86, 32 bit) of the key's
canonical bytes, modulo the number of partitions.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, Flag
from numbers import Number
from pathlib import PurePath, PureWindowsPath
from typing import Any
from uuid import UUID

import mmh3

from pyrite.errors import PyriteError
from pyrite.functions import describe, did_you_mean, shorten, shorten_text
from pyrite.keys import is_compared_by_fields
from pyrite.weights import is_batch

PARTITION_COUNT = 271
"""The number of partitions of a job that has few members and does not set it."""
PARTITIONS_PER_MEMBER = 4

_CACHE_LIMIT = 1 << 16
_HASHED = struct.Struct("<cq")
_pack_hash = _HASHED.pack


class InvalidKey(PyriteError, ValueError):
    """A partition key that cannot be used: it is None, its type has no canonical bytes, or a
    partitioner returned an id out of range for it."""


def partition_id(key: Any, partition_count: int = PARTITION_COUNT) -> int:
    """The partition that a key belongs to.

    >>> partition_id(1) == partition_id(1.0) == partition_id(True)
    True
    """
    return mmh3.hash(canonical_bytes(key), 0, signed=False) % partition_count


def default_partition_count(members: int) -> int:
    """The default number of partitions of a job: 271, or the next prime above four per member, so
    that all members get a similar number of partitions.

    >>> default_partition_count(2), default_partition_count(69), default_partition_count(128)
    (271, 277, 521)
    """
    count = PARTITIONS_PER_MEMBER * members + 1
    if count <= PARTITION_COUNT:
        return PARTITION_COUNT
    while any(count % divisor == 0 for divisor in range(2, math.isqrt(count) + 1)):
        count += 1
    return count


def canonical_bytes(key: Any) -> bytes:
    """Bytes that are the same for equal keys. For a string they are its UTF-8. For other keys the
    first byte is a tag for the kind of key, so that keys of different kinds differ."""
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
    """A function from key to partition id for one edge. `edge` is the name for error messages.

    It caches the ids of keys, and stops caching if most keys are new.
    """
    if partitioner is not None:
        return _custom(partition_count, partitioner, edge)
    hashed = mmh3.hash
    known: dict[Any, int] = {}
    room, asked = _CACHE_LIMIT, 0

    def partition(key: Any) -> int:
        nonlocal room, asked
        if type(key) is str:  # the cache would be slower than the hash
            # mmh3 cannot encode a string with half a surrogate pair itself.
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


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key of an item that is no batch, on an edge that is partitioned by columns: a row that is
    a dict has the same key as the same row of a batch."""

    columns: tuple[str, ...]
    edge: str
    nulls: bool = False
    """Whether the one column of a key may be null."""

    def check(self, item: Any) -> None:
        """Raises InvalidKey if the edge cannot carry an item: a batch without one of the columns,
        or something else that has no such columns."""
        if not is_batch(item):
            self.partition(item, 1)
            return
        names: list[str] = item.schema.names
        for column in self.columns:
            count = names.count(column)
            if not count:
                raise InvalidKey(
                    f"edge {self.edge} is partitioned by column {column!r}, but a batch has no "
                    f"such column; it has {_listed(names)}{did_you_mean(column, names)}"
                )
            if count > 1:
                raise InvalidKey(
                    f"edge {self.edge} is partitioned by column {column!r}, but a batch has "
                    f"{count} columns of this name; rename them before it"
                )
        if len(self.columns) == 1 and not self.nulls and item.column(self.columns[0]).null_count:
            raise self._null_key()

    def __call__(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            raise InvalidKey(
                f"edge {self.edge} is partitioned by columns, so it carries batches of rows "
                f"(pyarrow.RecordBatch), or rows as dicts; got {shorten(item)} "
                f"({describe(type(item))}). Make batches with p.batches(schema) before it, or "
                "partition it by a key function"
            )
        missing = [column for column in self.columns if column not in item]
        if missing:
            raise InvalidKey(
                f"edge {self.edge} is partitioned by column {missing[0]!r}, but a row has no such "
                f"column; it has {_listed(item)}{did_you_mean(missing[0], map(str, item))}"
            )
        if len(self.columns) == 1:
            return item[self.columns[0]]
        return tuple(item[column] for column in self.columns)

    def partition(self, item: Any, partition_count: int) -> int:
        """The partition of a row."""
        key = self(item)
        if key is None and not self.nulls:
            raise self._null_key()
        try:
            return partition_id(key, partition_count)
        except InvalidKey as error:
            text = str(error)
            if self.edge in text:
                raise
            raise InvalidKey(f"edge {self.edge}: {text}") from None

    def _null_key(self) -> InvalidKey:
        return InvalidKey(
            f"edge {self.edge} is partitioned by column {self.columns[0]!r}, which is null in a "
            "row, but a null cannot be a partition key; filter such rows out before it, or say "
            "partitioned(columns=..., nulls=True) to send them all to one partition"
        )


def _listed(names: Iterable[Any]) -> str:
    return shorten_text(", ".join(map(repr, names)), 500) or "no columns"


def none_key(edge: str) -> InvalidKey:
    return InvalidKey(
        f"the partition key of an item on edge {edge} is None, but None cannot be a partition key; "
        "give the edge a key function that never returns None, or filter such items out before it"
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
                f"whole number from 0 to {partition_count - 1}; got {shorten(found)} for key "
                f"{shorten(key)}"
            )
        return number

    return partition


def _encoder_of(kind: type) -> Callable[[Any], bytes]:
    """The function that encodes keys of a type. Values of a subclass, such as an IntEnum or a named
    tuple, equal values of its base class, so they are encoded like these."""
    if kind.__module__ == "numpy":
        found = _numpy_encoder(kind)
        if found is not None:
            return found
    for known, encode in _KINDS:
        if issubclass(kind, known):
            # getattr, because mypy takes kind.__eq__ for a bound method.
            if known in _OWN_EQUALITY and getattr(kind, "__eq__") is not getattr(known, "__eq__"):  # noqa: B009
                break  # the subclass has its own ==
            return encode
    else:
        if is_compared_by_fields(kind):
            return _dataclass
    if "__eq__" not in (name for each in kind.__mro__[:-1] for name in vars(each)):
        why = "the class does not define ==, so each object equals only itself"
    else:
        why = "the class defines its own ==, so Pyrite cannot tell which of its objects are equal"
    return _refusal(kind, why)


def _refusal(kind: type, why: str) -> Callable[[Any], bytes]:
    message = (
        f"a {describe(kind)} cannot be a partition key: {why}. Give the edge a key function that "
        "returns a string, a number, bytes, a date, an enum, a dataclass, or a tuple of these"
    )

    def refuse(key: Any) -> bytes:
        raise InvalidKey(message)

    return refuse


def _numpy_encoder(kind: type) -> Callable[[Any], bytes] | None:
    """The function that encodes numpy scalars. They are encoded like the equal Python value. None
    if the type has no equal Python values."""
    if kind.__name__ == "ndarray":
        return _refusal(kind, "== of two arrays returns an array, not True or False")
    if kind.__name__ in ("datetime64", "timedelta64"):
        return _refusal(kind, "equal values may have different units; convert it with .item()")
    if not hasattr(kind, "item"):
        return None

    def encode(key: Any) -> bytes:
        value = key.item()
        # item() of a longdouble returns a longdouble. Its hash equals that of equal numbers.
        return canonical_bytes(value) if type(value) is not kind else _number(key)

    return encode


def _number(key: Any) -> bytes:
    if key != key:  # the hashes of two NaN objects differ
        return b"nan"
    # Equal numbers of all types have the same hash, which does not depend on PYTHONHASHSEED.
    return _pack_hash(b"n", hash(key))


def _sequence(tag: str) -> Callable[[Any], bytes]:
    """The function that encodes tuples and lists. It joins the parts as text, which takes a third
    of the time of joining bytes. Equal keys give the same text; different keys may, too."""

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
    if len(data) == _HASHED.size and data[:1] == b"n":  # a number of any type
        return f"\x1e{_HASHED.unpack(data)[1]}"
    return data.decode("latin-1")


def _set(key: Any) -> bytes:
    return b"f" + _joined(sorted({canonical_bytes(part) for part in key}))  # NaN counts once


def _dict(key: dict[Any, Any]) -> bytes:
    return b"d" + _joined(
        sorted(_joined([canonical_bytes(k), canonical_bytes(v)]) for k, v in key.items())
    )


def _joined(parts: list[bytes]) -> bytes:
    """Joins the parts, with its length before each, so that ('a', 'bc') and ('ab', 'c') differ."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def _datetime(key: datetime.datetime) -> bytes:
    if key != key:  # NaT of pandas
        return b"nan"
    # When a clock is set back, an hour occurs twice, and `fold` says which one is meant. Python's
    # == and hash ignore `fold`, so it must be ignored here, too.
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
    if isinstance(key, PureWindowsPath):  # == ignores the case of Windows paths
        return b"w" + key.as_posix().lower().encode("utf-8", "surrogatepass")
    return b"p" + str(key).encode("utf-8", "surrogatepass")


def _dataclass(key: Any) -> bytes:
    fields = [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare]
    return b"c" + _joined([_class_name(key), *map(canonical_bytes, fields)])


def _class_name(key: Any) -> bytes:
    return f"{type(key).__module__}.{type(key).__qualname__}".encode()


# The first match counts: an IntEnum is encoded as a number, and a datetime is not taken for a date.
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
"""A subclass of these with its own == is not encoded like its base class."""
_ENCODERS: dict[type, Callable[[Any], bytes]] = {}
