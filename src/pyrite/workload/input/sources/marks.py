"""The fingerprint of a job that ran code which was not planned. It is like no other, so that the
job runs again; and it has the number of the source that was edited, to explain why."""

from __future__ import annotations

import os

from pyrite.workload.input.fingerprints.digests import SIZE

_MARK = b"\xffsource"
_NUMBER = 3


def mark(source: int) -> bytes:
    """
    >>> marked_source(mark(7)), marked_source(bytes(16))
    (7, None)
    """
    found = _MARK + source.to_bytes(_NUMBER, "little")
    return found + os.urandom(SIZE - len(found))


def marked_source(fingerprint: bytes) -> int | None:
    if not fingerprint.startswith(_MARK):
        return None
    return int.from_bytes(fingerprint[len(_MARK) :][:_NUMBER], "little")
