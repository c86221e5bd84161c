"""Orders: the messages by which a master tells a worker to run a job, and their binary format."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from pyrite.workload.input.fingerprints import SIZE
from pyrite.workload.storage.places import Place

_HEAD = struct.Struct(f"<III{SIZE}sI")
_INPUT = struct.Struct("<iQi")

INPUTS_MAX = 1000
"""The places of more inputs than this do not travel with the order, because a worker has several
orders in its inbox, and the inbox has a limit. They are in a file."""

BYTES_MAX = _HEAD.size + INPUTS_MAX * _INPUT.size
"""The size of the largest order. Receiving with a much larger buffer would map new memory for each
order, which takes longer than all else that a worker does for a job."""

DONE = b"done"
"""Sent when all jobs have ended, so that no job can fail and need another attempt."""


class Order(NamedTuple):
    job: int
    attempt: int
    fingerprint: bytes
    inputs: tuple[Place, ...]
    blob: int  # the number of its command in the command book


def pack(order: Order, put_aside: Callable[[Order, bytes], None]) -> bytes:
    """The bytes of an order. If its inputs are too many, their bytes are put aside."""
    head = _HEAD.pack(order.job, order.attempt, order.blob, order.fingerprint, len(order.inputs))
    if not order.inputs:
        return head
    places = b"".join([_INPUT.pack(*place) for place in order.inputs])
    if len(order.inputs) <= INPUTS_MAX:
        return head + places
    put_aside(order, places)
    return head


def unpack(data: bytes, fetch: Callable[[Order], bytes] | None = None) -> Order:
    """The order. `fetch` gets the bytes that were put aside; without it, such inputs are missing.

    >>> aside = {}
    >>> for inputs in ((Place(3, 100),), (Place(3, 100),) * 5000):
    ...     data = pack(Order(7, 1, bytes(16), inputs, 7), aside.__setitem__)
    ...     unpack(data, lambda order: next(iter(aside.values()))).inputs == inputs
    True
    True
    """
    job, attempt, blob, fingerprint, count = _HEAD.unpack_from(data)
    order = Order(job, attempt, fingerprint, (), blob)
    if not count:
        return order
    places = data[_HEAD.size :] or (fetch(order) if fetch is not None else b"")
    return order._replace(inputs=tuple(map(Place._make, _INPUT.iter_unpack(places))))
