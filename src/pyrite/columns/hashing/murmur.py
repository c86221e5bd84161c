"""Murmur3 (x86, 32 bit, seed 0) of many keys at once, in NumPy. Equal to `mmh3.hash(key, 0, False)`
of each key. It is fastest for some ten thousand keys, whose arrays fit in the processor's cache."""

from __future__ import annotations

from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

_LONG: Final = 256
"""Keys with at least so many bytes are hashed one by one."""
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_TAILS: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""By the number of bytes after the last whole word: the mask that keeps these bytes of a word."""


def hashes_of_tagged(tag: bytes, values: Array) -> Array:
    """The hash of a tag of one byte and the eight bytes (little-endian) of each int64."""
    unsigned = values.view(np.uint64)
    first = (unsigned << np.uint64(8)).astype(np.uint32)
    first |= np.uint32(tag[0])
    hashes = np.zeros(len(values), np.uint32)
    _add_word(hashes, first)
    _add_word(hashes, (unsigned >> np.uint64(24)).astype(np.uint32))
    hashes ^= _scrambled((unsigned >> np.uint64(56)).astype(np.uint32))
    _finish(hashes, np.uint32(9))
    return hashes


def hashes_of_bytes(array: pa.Array) -> Array:
    """The hash of the bytes of each value of a string or binary array. That of a null is any."""
    if not len(array):
        return np.zeros(0, np.uint32)
    starts, data = _starts_and_data(array)
    lengths = np.diff(starts)
    whole = lengths >> 2
    long = np.flatnonzero(lengths >= _LONG)
    if len(long):
        whole[long] = 0
    order = np.argsort(whole.astype(np.uint8), kind="stable")
    hashes = np.empty(len(array), np.uint32)
    hashes[order] = _sorted_hashes(starts[order], lengths[order], whole[order], data)
    for row in long.tolist():
        hashes[row] = mmh3.hash(bytes(data[starts[row] : starts[row + 1]]), 0, False)
    return hashes


def _sorted_hashes(starts: Array, lengths: Array, whole: Array, data: memoryview) -> Array:
    """The hashes of keys that are sorted by their numbers of whole words. So the keys that still
    have words are always a slice, from `first` to the end."""
    words = np.frombuffer(data, "<u4", len(data) // 4)
    most = int(whole[-1])
    ends = np.bincount(whole, minlength=most + 1).cumsum().tolist()
    # A key may start inside an aligned word: each of its words is made of two of these.
    at = starts >> 2
    right = ((starts & 3) << 3).astype(np.uint32)
    left = np.uint32(32) - right
    hashes = np.zeros(len(starts), np.uint32)
    low = words[at]
    first = 0
    for end in ends:
        at[first:] += 1
        high = words[at[first:]]
        word = low >> right[first:]
        word |= high << left[first:]
        if end > first:  # these keys have no more whole words
            tail = word[: end - first]
            tail &= _TAILS[lengths[first:end] & 3]
            hashes[first:end] ^= _scrambled(tail)
            word, high = word[end - first :], high[end - first :]
            first = end
        _add_word(hashes[first:], word)
        low = high
    _finish(hashes, lengths.astype(np.uint32))
    return hashes


def _starts_and_data(array: pa.Array) -> tuple[Array, memoryview]:
    """Where each value starts, and where the last one ends, and the bytes, of which there are at
    least eight after the last value."""
    kind = array.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offsets, values = array.buffers()
    number = np.dtype(np.int64 if is_large else np.int32)
    starts = np.frombuffer(offsets, number, len(array) + 1, array.offset * number.itemsize)
    starts = starts.astype(np.int64)
    first, end = int(starts[0]), int(starts[-1])
    if values is not None and end + 8 <= values.size:
        return starts, memoryview(values)
    copied = bytearray(end - first + 8)
    if end > first:
        copied[:-8] = memoryview(values)[first:end]
    return starts - first, memoryview(copied)


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
