"""Murmur3 (x86, 32 bit, seed 0) of many keys at once, in NumPy. Equal to `mmh3.hash(key, 0, False)`
of each key.

Rows are hashed some thousands at a time, so that all arrays of a step stay in the processor's
cache; it takes about a third of the time of one pass over all rows."""

from __future__ import annotations

from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS: Final = 1 << 14
_LONG: Final = 256
"""Keys with at least so many bytes are hashed one by one."""
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_TAILS: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""By the number of bytes after the last whole word: the mask that keeps these bytes of a word."""


def hashes_of_tagged(tag: bytes, values: Array) -> Array:
    """The hash of a tag of one byte and the eight bytes (little-endian) of each 64-bit integer."""
    unsigned = values.view(np.uint64)
    found = np.empty(len(values), np.uint32)
    for start in range(0, len(values), _ROWS):
        part = unsigned[start : start + _ROWS]
        hashes = found[start : start + _ROWS]
        hashes[:] = 0
        first = (part << np.uint64(8)).astype(np.uint32)
        first |= np.uint32(tag[0])
        _add_word(hashes, first)
        _add_word(hashes, (part >> np.uint64(24)).astype(np.uint32))
        hashes ^= _scrambled((part >> np.uint64(56)).astype(np.uint32))
        _finish(hashes, np.uint32(9))
    return found


def hashes_of_bytes(array: pa.Array) -> Array:
    """The hash of the bytes of each value of a string or binary array. That of a null is any."""
    starts, data = _offsets_and_data(array)
    found = np.empty(len(array), np.uint32)
    # A word may start at any byte: the strides are one byte, and words overlap.
    words: Array = np.ndarray((max(len(data) - 3, 0),), "<u4", buffer=data, strides=(1,))
    for start in range(0, len(array), _ROWS):
        part = starts[start : start + _ROWS + 1].astype(np.int64)
        _hash_part(part, words, data, found[start : start + _ROWS])
    return found


def _hash_part(starts: Array, words: Array, data: memoryview, hashes: Array) -> None:
    lengths = np.diff(starts)
    at = starts[:-1]
    long = np.flatnonzero(lengths >= _LONG)
    whole = lengths >> 2
    if len(long):
        whole[long] = 0
    fewest, most = int(whole.min()), int(whole.max())
    hashes[:] = 0
    for word in range(fewest):
        _add_word(hashes, words[at + 4 * word])
    rows = np.flatnonzero(whole > fewest)
    for word in range(fewest, most):
        some = hashes[rows]
        _add_word(some, words[at[rows] + 4 * word])
        hashes[rows] = some
        rows = rows[whole[rows] > word + 1]
    hashes ^= _scrambled(words[at + 4 * whole] & _TAILS[lengths & 3])
    _finish(hashes, lengths.astype(np.uint32))
    for row in long.tolist():
        hashes[row] = mmh3.hash(bytes(data[starts[row] : starts[row + 1]]), 0, False)


def _offsets_and_data(array: pa.Array) -> tuple[Array, memoryview]:
    """Where each value starts, and where the last one ends, and the bytes, of which there are at
    least four after the last value."""
    kind = array.type
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        starts = np.arange(len(array) + 1, dtype=np.int64) * width + array.offset * width
        values = array.buffers()[1]
    else:
        is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        _, offsets, values = array.buffers()
        if offsets is None or not len(array):
            return np.zeros(len(array) + 1, np.int64), memoryview(bytes(4))
        number = np.dtype(np.int64 if is_large else np.int32)
        starts = np.frombuffer(offsets, number, len(array) + 1, array.offset * number.itemsize)
    size = 0 if values is None else values.size
    end = int(starts[-1])
    if end + 4 <= size:
        return starts, memoryview(values)
    first = int(starts[0])
    copied = bytearray(end - first + 4)
    if end > first:
        copied[:-4] = memoryview(values)[first:end]
    return starts - starts.dtype.type(first), memoryview(copied)


def _add_word(hashes: Array, word: Array) -> None:
    hashes ^= _scrambled(word)
    _rotate(hashes, 13)
    hashes *= np.uint32(5)
    hashes += np.uint32(0xE6546B64)


def _scrambled(word: Array) -> Array:
    word *= _C1
    _rotate(word, 15)
    word *= _C2
    return word


def _rotate(words: Array, bits: int) -> None:
    right = words >> np.uint32(32 - bits)
    words <<= np.uint32(bits)
    words |= right


def _finish(hashes: Array, lengths: Any) -> None:
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
