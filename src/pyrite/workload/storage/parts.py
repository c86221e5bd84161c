"""Several pieces of bytes in one, each with a number for its kind, and an index at the head: a
piece can be read without the others, and the digests without any piece."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from pyrite.workload.input.fingerprints import SIZE, digest

_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct(f"<BQQ{SIZE}s")

Read = Callable[[int, int], bytes]
"""Reads some of the joined bytes: from a position, this many."""

Identify = Callable[[int, bytes], bytes]
"""The digest of a piece, from its kind and its bytes."""


def _whole(kind: int, data: bytes) -> bytes:
    return digest(data)


def joined(parts: Sequence[tuple[int, bytes]], identify: Identify = _whole) -> bytes:
    """
    >>> data = joined([(1, b"abc"), (5, b"de")])
    >>> part(lambda start, length: data[start : start + length], 1)
    (5, b'de')
    """
    entries = []
    start = _COUNT.size + _ENTRY.size * len(parts)
    for kind, data in parts:
        entries.append(_ENTRY.pack(kind, start, len(data), identify(kind, data)))
        start += len(data)
    return b"".join([_COUNT.pack(len(parts)), *entries, *(data for _, data in parts)])


def digests(read: Read) -> list[bytes]:
    """The digest of each part."""
    return [found for *_, found in _ENTRY.iter_unpack(_index(read))]


def part(read: Read, number: int, identify: Identify = _whole) -> tuple[int, bytes]:
    """One part. Raises OSError if it is missing or damaged."""
    entry = read(_COUNT.size + _ENTRY.size * number, _ENTRY.size)
    if len(entry) < _ENTRY.size:
        raise OSError(f"element {number} is missing")
    kind, start, length, expected = _ENTRY.unpack(entry)
    data = read(start, length)
    if identify(kind, data) != expected:
        raise OSError(f"element {number} is damaged")
    return kind, data


def all_parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    entries = _index(lambda start, length: data[start : start + length])
    for kind, start, length, _ in _ENTRY.iter_unpack(entries):
        yield kind, data[start : start + length]


def _index(read: Read) -> bytes:
    first = read(0, _COUNT.size)
    if len(first) < _COUNT.size:
        raise OSError("the index of the elements is missing")
    return read(_COUNT.size, _ENTRY.size * _COUNT.unpack(first)[0])
