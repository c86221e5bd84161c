"""Python's `hash` of numbers, in NumPy: equal numbers have the same hash, whatever their types are.
It is the number modulo a prime, 2**61 - 1, with the number's sign."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_BITS: Final = 61
_MODULUS: Final = sys.hash_info.modulus
_PRIME: Final = np.uint64(_MODULUS)
_INFINITE: Final = 0x7FF


def hashes_of_integers(values: Array) -> Array:
    """`hash` of each integer of any width, as int64."""
    if values.dtype.itemsize < 8:
        return _without_minus_one(values.astype(np.int64))
    if values.dtype.kind == "u":
        return _reduced(values).view(np.int64)
    # |x| of the smallest int64 is itself; as an unsigned integer it is right.
    return _signed(_reduced(np.abs(values).view(np.uint64)), values < 0)


def hashes_of_floats(values: Array) -> Array:
    """`hash` of each float64, as int64. That of a NaN is any."""
    bits = values.view(np.uint64)
    exponents = ((bits >> np.uint64(52)) & np.uint64(_INFINITE)).astype(np.intp)
    mantissas = bits & np.uint64((1 << 52) - 1)
    mantissas |= (exponents > 0).astype(np.uint64) << np.uint64(52)
    rotated = _times_power_of_two(mantissas, _SHIFTS[exponents])
    rotated[exponents == _INFINITE] = sys.hash_info.inf
    return _signed(rotated, values < 0)


_SHIFTS: Final = np.array(
    [(max(exponent, 1) - 1075) % _BITS for exponent in range(_INFINITE + 1)], np.uint64
)
"""By the exponent in the bits of a float64: the power of two of its mantissa, modulo 61. The
exponent of subnormal numbers is 0; their power is that of exponent 1."""


def hashes_of_decimals(words: Array, scale: int) -> Array:
    """`hash` of decimals, as int64. Each row of `words` has the uint64 words (little-endian, two's
    complement) of a decimal without its point, which is `scale` digits from the right."""
    negative = words[:, -1] >> np.uint64(63) != 0
    remainders = np.zeros(len(words), np.uint64)
    for number in range(words.shape[1]):
        shift = np.uint64(64 * number % _BITS)
        remainders = _reduced(remainders + _times_power_of_two(_reduced(words[:, number]), shift))
    # A negative number is 2**bits less than its words say.
    less = _MODULUS - (1 << (64 * words.shape[1] % _BITS))
    remainders = np.where(negative, _reduced(remainders + np.uint64(less)), remainders)
    magnitudes = np.where(negative, _reduced(_PRIME - remainders), remainders)
    return _signed(_times(magnitudes, pow(10, -scale, _MODULUS)), negative)


def _times(values: Array, factor: int) -> Array:
    """Values below the prime, times a factor below the prime, modulo the prime. The halves have 31
    bits, so no product has more than 62; 2**61 is 1, and 2**62 is 2."""
    low, high = np.uint64(factor & _HALF), np.uint64(factor >> 31)
    lows, highs = values & np.uint64(_HALF), values >> np.uint64(31)
    middle = _reduced(lows * high + highs * low)
    products = lows * low + np.uint64(2) * (highs * high)
    return _reduced(_reduced(products) + _times_power_of_two(middle, np.uint64(31)))


_HALF: Final = (1 << 31) - 1


def _times_power_of_two(values: Array, powers: Any) -> Array:
    """Values below the prime, times two to a power below 61, modulo the prime: 61 bits rotate."""
    rotated: Array = ((values << powers) & _PRIME) | (values >> (np.uint64(_BITS) - powers))
    return rotated


def _reduced(values: Array) -> Array:
    """Each uint64 modulo the prime."""
    folded = (values & _PRIME) + (values >> np.uint64(_BITS))
    folded -= _PRIME * (folded >= _PRIME)
    return folded


def _signed(magnitudes: Array, negative: Array) -> Array:
    hashes = magnitudes.view(np.int64)
    return _without_minus_one(np.where(negative, -hashes, hashes))


def _without_minus_one(hashes: Array) -> Array:
    """In Python -1 says that there is no hash; the hash of -1 is -2."""
    hashes -= hashes == -1
    return hashes
