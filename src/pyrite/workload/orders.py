"""Orders: what a master sends to a worker for one try of a job, and how it is written."""

from __future__ import annotations

import struct
from typing import NamedTuple

from pyrite.workload.fingerprints import SIZE

_HEAD = struct.Struct(f"<II{SIZE}sI")
_INPUT = struct.Struct("<IQ")

DONE = b"done"
"""Sent once there is nothing left to do, nor anything under way that could fail and need another
try."""


class Order(NamedTuple):
    job: int
    attempt: int
    fingerprint: bytes
    inputs: tuple[tuple[int, int], ...]  # segment and offset of each result that the job is given


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
