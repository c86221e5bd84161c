"""Digests of bytes."""

from __future__ import annotations

from hashlib import blake2b

SIZE = 16
NO_FINGERPRINT = bytes(SIZE)


def digest(*parts: bytes) -> bytes:
    """
    >>> digest(b"ab", b"c") == digest(b"a", b"bc")
    False
    """
    hashed = blake2b(digest_size=SIZE)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()
