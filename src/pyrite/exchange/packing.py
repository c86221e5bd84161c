"""Packs lists of items into packets: bytes that cross an exchange or the network.

A pickle has a list of items, or two lists if all items are pairs, of their halves. A packet has one
pickle, or several. If all items are batches of rows, the packet is Arrow IPC.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import cloudpickle

from pyrite.columns.packing.item_pickling import PLAIN, dumps
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.weights import MOST_PACKET_BYTES, how_many_fit, is_batch


def pickled(packet: Any, items: Iterable[Any], edge: EdgePlan) -> bytes:
    """Pickles a packet of items. If plain pickle fails, cloudpickle is used, which also pickles
    the code of classes and functions that workers cannot import."""
    rest = iter(items)
    first = next(rest, None)
    try:
        return dumps(packet, first)
    except Exception as error:
        unpicklable = _first_unpicklable(chain([first], rest))
        raise RoutingFailed(edge.name, unpicklable, error) from error


def pickled_pairs(packet: Any, firsts: list[Any], seconds: list[Any], edge: EdgePlan) -> bytes:
    """The same for pairs, of which the packet has the halves in two lists."""
    if type(firsts[0]) in PLAIN and type(seconds[0]) in PLAIN:
        try:
            return pickle.dumps(packet, 5)
        except Exception:
            pass
    return pickled(packet, zip(firsts, seconds), edge)


def are_batches(items: Sequence[Any]) -> bool:
    """Whether all items are batches of rows, so that a packet of them is Arrow IPC."""
    return bool(items) and is_batch(items[0]) and all(map(is_batch, items))


def packets_of_batches(batches: Sequence[Any]) -> Iterator[memoryview]:
    """Packets of at most MOST_PACKET_BYTES; a larger batch has one of its own."""
    from pyrite.columns.packing.ipc import packed_buffer

    start = 0
    while start < len(batches):
        count = how_many_fit(batches[start:], MOST_PACKET_BYTES)
        yield memoryview(packed_buffer(batches[start : start + count]))
        start += count


def batches_of(packet: bytes | memoryview) -> list[Any]:
    """The batches of a packet of Arrow IPC. They share the memory of the packet."""
    from pyrite.columns.packing.ipc import unpacked

    return unpacked(packet)


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
    """The items of a packet.

    >>> items_of(joined([pickle.dumps([1, 2]), pickle.dumps((["a"], ["b"]))]))
    [1, 2, ('a', 'b')]
    """
    packet = memoryview(packet).cast("B")
    if packet[0] == _ARROW:
        return batches_of(packet)
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
_ARROW: Final = 0xFF
"""The first byte of Arrow IPC."""


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
