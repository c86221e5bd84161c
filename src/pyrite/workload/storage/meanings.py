"""Results whose bytes do not tell what they mean. The pickle of a set has another order in each
process, and that of an object of the user's script has its class in it, with a random name. Such
results carry a digest of what they mean, so that downstream jobs are skipped if it is the same."""

from __future__ import annotations

from typing import Any

from pyrite.workload.input.fingerprints import SIZE, Fingerprints, digest

LARGEST = 1 << 16
"""The size of the largest pickle for which the meaning is looked for. It takes some microseconds
per object in the result."""

_SIGNS = (b"\x8f", b"\x91", b"cloudpickle")  # a set, a frozenset, and what is pickled by value


def with_meaning(value: Any, pickled: bytes) -> bytes | None:
    """The pickle and its meaning; None if the bytes tell the meaning as well, or if it cannot be
    found out."""
    if len(pickled) > LARGEST or not any(sign in pickled for sign in _SIGNS):
        return None
    survey = Fingerprints().survey(value)
    return None if survey.reasons else survey.digest + digest(pickled) + pickled


def meaning_of(data: bytes) -> bytes:
    """The digest of the meaning, or of the bytes if they are damaged."""
    whole = digest(data[2 * SIZE :]) == data[SIZE : 2 * SIZE]
    return data[:SIZE] if whole else digest(data)


def pickle_of(data: bytes) -> bytes:
    return data[2 * SIZE :]
