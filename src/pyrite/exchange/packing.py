"""Packs lists of items into packets: bytes that cross an exchange or the network.

A pickle has a list of items, or two lists if all items are pairs, of their halves. A packet has one
pickle, or several.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import cloudpickle

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed


def pickled(packet: Any, items: Iterable[Any], edge: EdgePlan) -> bytes:
    """Pickles a packet of items. If plain pickle fails, cloudpickle is used, which also pickles
    the code of classes and functions that workers cannot import."""
    try:
        return pickle.dumps(packet, 5)
    except Exception:
        pass
    try:
        packed: bytes = cloudpickle.dumps(packet, 5)
        return packed
    except Exception as error:
        raise RoutingFailed(edge.name, _first_unpicklable(items), error) from error


def _first_unpicklable(items: Iterable[Any]) -> Any:
    for item in items:
        try:
            cloudpickle.dumps(item, 5)
        except Exception:
            return item
    return None


def joined(chunks: Sequence[bytes]) -> bytes:
    """Joins several pickles of lists of items into one packet."""
    if len(chunks) == 1:
        return chunks[0]
    lengths = array("Q", map(len, chunks))
    return b"".join([_SEVERAL, len(chunks).to_bytes(4, "little"), lengths.tobytes(), *chunks])


def items_of(packet: bytes | memoryview) -> list[Any]:
    """Unpickles the items of a packet.

    >>> items_of(joined([pickle.dumps([1, 2]), pickle.dumps((["a"], ["b"]))]))
    [1, 2, ('a', 'b')]
    """
    packet = memoryview(packet)
    if packet[0] != _SEVERAL[0]:
        return _unpickled(packet)
    count = int.from_bytes(packet[1:5], "little")
    start = 5 + 8 * count
    items: list[Any] = []
    for length in array("Q", packet[5:start].tobytes()):
        items += _unpickled(packet[start : start + length])
        start += length
    return items


_SEVERAL: Final = b"+"
"""The first byte of a packet with several pickles. A pickle starts with another byte."""


def _unpickled(packet: memoryview) -> list[Any]:
    items = pickle.loads(packet)
    return list(zip(*items)) if type(items) is tuple else items


class OpenPacket:
    """A packet that is not full yet. It has several pickles, each of a list of items."""

    __slots__ = ("_chunks", "size")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self.size = 0

    def add(self, chunk: bytes) -> int:
        """Adds a pickle. Returns the new size of the packet."""
        self._chunks.append(chunk)
        self.size += len(chunk)
        return self.size

    def closed(self) -> bytes:
        return joined(self._chunks)
