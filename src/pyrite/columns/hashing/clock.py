"""Dates and times of day as text (ISO 8601), in NumPy. A text is a row of a matrix of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

_FIRST: Final = np.datetime64("1900-01-01").astype(np.int64)
_LAST: Final = np.datetime64("2099-12-31").astype(np.int64)


def date_texts(days: Array) -> Array:
    """Days since 1970, from the years 1 to 9999, as YYYY-MM-DD."""
    if len(days) and days.min() >= _FIRST and days.max() <= _LAST:
        texts: Array = _calendar()[days - _FIRST]
        return texts
    return _formatted(days)


def clock_texts(seconds: Array) -> Array:
    """Seconds since midnight as HH:MM:SS."""
    texts: Array = _clock()[seconds]
    return texts


def joined_texts(parts: Sequence[bytes | Array], *, nanoseconds: Array | None = None) -> pa.Array:
    """The parts, one after the other, as a binary array. `nanoseconds` are the fraction of a
    second: nothing if they are 0, six digits if these are enough, else nine."""
    columns = [part for part in parts if not isinstance(part, bytes)]
    rows = len(columns[0])
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    short = sum(widths)
    lengths = np.full(rows, short)
    if nanoseconds is not None and nanoseconds.any():
        lengths += 7 * (nanoseconds != 0)
        lengths += 3 * (nanoseconds % 1000 != 0)
    width = int(lengths.max(initial=short))
    texts = np.empty((rows, width), np.uint8)
    end = 0
    for part, its in zip(parts, widths):
        texts[:, end : end + its] = (
            np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        )
        end += its
    if nanoseconds is not None and width > short:
        texts[:, short] = ord(".")
        thousands = nanoseconds // 1000
        texts[:, short + 1 : short + 4] = _thousand()[thousands // 1000]
        texts[:, short + 4 : short + 7] = _thousand()[thousands % 1000]
        if width > short + 7:
            texts[:, short + 7 :] = _thousand()[nanoseconds % 1000]
    return _as_array(texts, lengths)


def _as_array(texts: Array, lengths: Array) -> pa.Array:
    width = texts.shape[1]
    if len(lengths) and lengths.min() < width:
        texts = texts[np.arange(width) < lengths[:, None]]
    offsets = np.zeros(len(lengths) + 1, np.int32)
    lengths.cumsum(out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers, 0)


@cache
def _calendar() -> Array:
    return _formatted(np.arange(_FIRST, _LAST + 1))


@cache
def _clock() -> Array:
    minutes = np.arange(86_400) // 60
    parts = [minutes // 60, minutes % 60, np.arange(86_400) % 60]
    texts = np.full((86_400, 8), ord(":"), np.uint8)
    for number, part in enumerate(parts):
        texts[:, 3 * number : 3 * number + 2] = _thousand()[part][:, 1:]
    return texts


@cache
def _thousand() -> Array:
    """The numbers from 000 to 999."""
    numbers = np.arange(1000)
    digits = np.stack([numbers // 100, numbers // 10 % 10, numbers % 10], axis=1)
    return (digits + ord("0")).astype(np.uint8)


def _formatted(days: Array) -> Array:
    texts = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10")
    return texts.view(np.uint8).reshape(-1, 10)
