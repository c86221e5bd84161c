"""Orders: the messages by which a master tells a worker to run a job, and their binary format."""

from __future__ import annotations

import struct
from typing import NamedTuple

from pyrite.workload.input.fingerprints import SIZE

_HEAD = struct.Struct(f"<II{SIZE}sI")
_INPUT = struct.Struct("<IQ")

DONE = b"done"
"""Sent when all jobs have ended, so that no job can fail and need another attempt."""


class Order(NamedTuple):
    job: int
    attempt: int
    fingerprint: bytes
    inputs: tuple[tuple[int, int], ...]  # segment and offset of each result that is passed


def pack(order: Order) -> bytes:
    """
    >>> unpack(pack(Order(7, 1, bytes(16), ((3, 100),)))) == Order(7, 1, bytes(16), ((3, 100),))
    True
    """
    head = _HEAD.pack(order.job, order.attempt, order.fingerprint, len(order.inputs))
    return (
        head + b"".join([_INPUT.pack(*place) for place in order.inputs]) if order.inputs else head
    )


def unpack(data: bytes) -> Order:
    job, attempt, fingerprint, count = _HEAD.unpack_from(data)
    inputs = tuple(_INPUT.iter_unpack(data[_HEAD.size :])) if count else ()
    return Order(job, attempt, fingerprint, inputs)
