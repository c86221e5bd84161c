"""Python's `hash` of numbers, in NumPy: equal numbers have the same hash, whatever their types are.
It is the number modulo a prime, 2**61 - 1, with the number's sign."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

PRIME: Final = sys.hash_info.modulus
_BITS: Final = 61
_PRIME: Final = np.uint64(PRIME)
_INFINITE: Final = 0x7FF


def hashes_of_integers(values: Array) -> Array:
    """`hash` of each integer of any width, as int64."""
    if values.dtype.itemsize < 8:
        hashes = values.astype(np.int64)
    elif values.dtype.kind == "u":
        return reduced(values).view(np.int64)
    else:
        # |x| of the smallest int64 is itself; as an unsigned integer it is right.
        hashes = signed(reduced(np.abs(values).view(np.uint64)), values < 0)
    hashes[hashes == -1] = -2
    return hashes


def hashes_of_floats(values: Array) -> Array:
    """`hash` of each float64, as int64. That of a NaN is any."""
    bits = values.view(np.uint64)
    exponents = ((bits >> np.uint64(52)) & np.uint64(_INFINITE)).astype(np.intp)
    mantissas = bits & np.uint64((1 << 52) - 1)
    mantissas |= np.where(exponents > 0, np.uint64(1 << 52), np.uint64(0))
    # To multiply by a power of two modulo 2**61 - 1 is to rotate 61 bits.
    shifts = _SHIFTS[exponents]
    rotated = (mantissas << shifts) & _PRIME
    rotated |= mantissas >> (np.uint64(_BITS) - shifts)
    rotated[exponents == _INFINITE] = sys.hash_info.inf
    hashes = signed(rotated, bits >> np.uint64(63) != 0)
    hashes[hashes == -1] = -2
    return hashes


def reduced(values: Array) -> Array:
    """Each uint64 modulo the prime."""
    folded = (values & _PRIME) + (values >> np.uint64(_BITS))
    folded -= _PRIME * (folded >= _PRIME)
    return folded


def signed(magnitudes: Array, negative: Array) -> Array:
    """The magnitudes (below the prime) as int64, negative where it says so."""
    hashes = magnitudes.view(np.int64)
    np.negative(hashes, out=hashes, where=negative)
    return hashes


_SHIFTS: Final = np.array(
    [(max(exponent, 1) - 1075) % _BITS for exponent in range(_INFINITE + 1)], np.uint64
)
"""By the exponent in the bits of a float64: the power of two of its mantissa, modulo 61. The
exponent of subnormal numbers is 0; their power is that of exponent 1."""
