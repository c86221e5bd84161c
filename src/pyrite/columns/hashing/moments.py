"""The canonical bytes of dates, times, timestamps and durations, without a loop over rows. They are
those that `pyrite.partitioning` makes of the Python objects that `to_pylist` gives.

A value that Python cannot represent, such as a date after the year 9999, has bytes of its own."""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.hashing.clock import clock_texts, date_texts, joined_texts
from pyrite.partitioning import canonical_bytes

Array = np.ndarray[Any, np.dtype[Any]]

_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY: Final = 86_400
_EPOCH: Final = datetime.date(1970, 1, 1)
_FIRST_DAY: Final = (datetime.date(1, 1, 3) - _EPOCH).days
_LAST_DAY: Final = (datetime.date(9999, 12, 29) - _EPOCH).days
"""Two days less at both ends, since a time zone may go over them."""


def canonical(column: pa.Array) -> pa.Array:
    """The canonical bytes of each value, null for null."""
    kind, types = column.type, pa.types
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    values = _integers(column)
    if null is not None:
        values = np.where(null, 0, values)
    if types.is_date(kind):
        texts, is_odd = _dates(values, 1 if types.is_date32(kind) else 1000 * _DAY)
    elif types.is_time(kind):
        texts, is_odd = _times(values, _UNITS[kind.unit])
    elif types.is_duration(kind):
        texts, is_odd = _durations(values, _UNITS[kind.unit])
    elif kind.tz is None:
        texts, is_odd = _timestamps(values, _UNITS[kind.unit])
    else:
        texts, is_odd = _moments(values, column)
    if is_odd.any():
        texts = pc.replace_with_mask(texts, pa.array(is_odd), _odd(column, is_odd, texts.type))
    return texts if null is None else pc.if_else(pa.array(null), pa.scalar(None, texts.type), texts)


def _integers(column: pa.Array) -> Array:
    values = np.frombuffer(column.buffers()[1], f"<i{column.type.byte_width}")
    return values[column.offset : column.offset + len(column)].astype(np.int64, copy=False)


def _dates(values: Array, per_day: int) -> tuple[pa.Array, Array]:
    days = values // per_day
    is_odd = _is_far(days)
    return joined_texts([b"a", date_texts(np.where(is_odd, 0, days))]), is_odd


def _times(values: Array, per_second: int) -> tuple[pa.Array, Array]:
    seconds, fractions = np.divmod(values, per_second)
    is_odd = (seconds < 0) | (seconds >= _DAY)
    nanoseconds = fractions * (10**9 // per_second) // 1000 * 1000  # Python's times have no more
    clock = clock_texts(np.where(is_odd, 0, seconds))
    return joined_texts([b"h", clock], nanoseconds=nanoseconds), is_odd


def _timestamps(values: Array, per_second: int) -> tuple[pa.Array, Array]:
    seconds, fractions = np.divmod(values, per_second)
    days, seconds = np.divmod(seconds, _DAY)
    is_odd = _is_far(days) | (values == _NAT)
    texts: list[bytes | Array] = [
        b"T",
        date_texts(np.where(is_odd, 0, days)),
        b"T",
        clock_texts(seconds),
    ]
    return joined_texts(texts, nanoseconds=fractions * (10**9 // per_second)), is_odd


_NAT: Final = np.iinfo(np.int64).min


def _is_far(days: Array) -> Array:
    is_far: Array = (days < _FIRST_DAY) | (days > _LAST_DAY)
    return is_far


def _durations(values: Array, per_second: int) -> tuple[pa.Array, Array]:
    seconds, fractions = np.divmod(values, per_second)
    days, seconds = np.divmod(seconds, _DAY)
    is_odd = (np.abs(days) >= datetime.timedelta.max.days) | (values == _NAT)
    microseconds = fractions * (10**9 // per_second) // 1000
    digits = [pa.array(part).cast(pa.string()) for part in (days, seconds, microseconds)]
    return pc.binary_join_element_wise("D", _dotted(digits), "").cast(pa.binary()), is_odd


def _dotted(digits: list[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*digits, ".")


def _moments(values: Array, column: pa.Array) -> tuple[pa.Array, Array]:
    """Timestamps with a time zone: microseconds since the first day of the calendar."""
    per_second = _UNITS[column.type.unit]
    seconds, fractions = np.divmod(values, per_second)
    days = seconds // _DAY
    is_odd = _is_far(days) | (values == _NAT)
    seconds = np.where(is_odd, 0, seconds) + _EPOCH.toordinal() * _DAY
    microseconds = seconds * 10**6 + fractions * (10**9 // per_second) // 1000
    if not _is_fixed(column.type):
        rows = np.flatnonzero(_may_occur_twice(column.type, days) & ~is_odd)
        found = column.take(pa.array(rows)).to_pylist()
        microseconds[rows] = [int(canonical_bytes(each)[1:]) if each else 0 for each in found]
    digits = pa.array(microseconds).cast(pa.string())
    return pc.binary_join_element_wise("U", digits, "").cast(pa.binary()), is_odd


@lru_cache
def _is_fixed(kind: pa.DataType) -> bool:
    """Whether a time zone always has the same offset."""
    return kind.tz == "UTC" or isinstance(pa.scalar(0, kind).as_py().tzinfo, datetime.timezone)


def _may_occur_twice(kind: pa.DataType, days: Array) -> Array:
    """The rows whose time of day may occur twice, because a clock is set back. Canonical bytes do
    not tell these times apart. All others are as far from each other as they seem to be."""
    known = _days_with_changes(kind)
    is_far = (days < _KNOWN_FROM) | (days >= _KNOWN_FROM + len(known))
    numbers = np.where(is_far, 0, days - _KNOWN_FROM)
    for number in np.unique(numbers[known[numbers] == _UNKNOWN]).tolist():
        known[number] = _has_change(kind, _KNOWN_FROM + number)
    may: Array = is_far | (known[numbers] == 1)
    return may


_KNOWN_FROM: Final = (datetime.date(1900, 1, 1) - _EPOCH).days
_KNOWN_TO: Final = (datetime.date(2100, 1, 1) - _EPOCH).days
_UNKNOWN: Final = -1


@lru_cache
def _days_with_changes(kind: pa.DataType) -> Array:
    """For each day from 1900 to 2099: 1 or 0, or that it is not known yet."""
    return np.full(_KNOWN_TO - _KNOWN_FROM, _UNKNOWN, np.int8)


def _has_change(kind: pa.DataType, day: int) -> bool:
    """Whether the offset of the time zone changes on this day of UTC, or on the day before. No time
    zone has ever changed its offset and changed it back within three days."""
    per_day = _UNITS[kind.unit] * _DAY
    before, after = (pa.scalar(each * per_day, kind).as_py() for each in (day - 1, day + 1))
    return bool(before.utcoffset() != after.utcoffset())


def _odd(column: pa.Array, is_odd: Array, kind: pa.DataType) -> pa.Array:
    rows = pa.array(np.flatnonzero(is_odd))
    return pa.array(map(_odd_bytes, column.take(rows)), kind)


def _odd_bytes(value: pa.Scalar) -> bytes:
    try:
        return canonical_bytes(value.as_py())
    except (OverflowError, ValueError):
        return b"?%d" % value.value
