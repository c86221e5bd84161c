"""Turns the items of a sender into payloads of packets, and payloads into items.

A payload is a list of groups. A group has the partition that its items belong to, or None, and the
items: as a list; or, if all are pairs, as two lists, of their halves. If all items are batches of
rows, a payload has the partition and the number of batches of each group, and then Arrow IPC.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from pyrite.engine.ends import Packet
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.errors import PyriteError
from pyrite.exchange.packing import are_batches, batches_of, pickled, pickled_pairs
from pyrite.weights import MOST_PACKET_BYTES, bytes_of

Groups = list[tuple[int | None, list[Any]]]

MOST_ITEMS: Final = 8192
LARGEST_ITEM: Final = 1 << 30
FIRST_GUESS: Final = 64
"""Items in the first packet of an edge, as long as their size is unknown."""


class Packing:
    """Makes packets of about the size in the edge's settings. It learns from each packet how many
    items that is."""

    __slots__ = ("_edge", "_largest", "_limit", "_way", "items_per_packet")

    def __init__(
        self,
        edge: EdgePlan,
        *,
        limit: int | None = None,
        largest: int | None = None,
        way: str = "between members",
    ) -> None:
        """Packets have about `limit` bytes, by default as the edge says, and never more than
        `largest`. `way` says in messages what the packets travel over."""
        self._edge = edge
        self._limit = limit or edge.settings.packet_size_limit
        self._largest = largest or LARGEST_ITEM
        self._way = way
        self.items_per_packet = FIRST_GUESS

    def pairs(self, firsts: list[Any], seconds: list[Any]) -> Iterator[tuple[bytes, int]]:
        """The same for pairs without a partition, given as the lists of their halves."""
        count = len(firsts)
        payload = pickled_pairs([(None, firsts, seconds)], firsts, seconds, self._edge)
        if len(payload) > min(2 * self._limit, self._largest):
            yield from self.packets([(None, list(zip(firsts, seconds)))])
            return
        self._learn(count, len(payload))
        yield payload, count

    def _learn(self, count: int, size: int) -> None:
        self.items_per_packet = max(1, min(MOST_ITEMS, self._limit * count // size))

    def packets(self, groups: Groups) -> Iterator[tuple[bytes, int]]:
        """The payloads for some items, each with the number of its items."""
        count = sum(len(items) for _, items in groups)
        if all(are_batches(items) for _, items in groups):
            yield from self._packets_of_batches(groups, count)
            return
        payload = pickled(
            [_packed(partition, items) for partition, items in groups],
            chain.from_iterable(items for _, items in groups),
            self._edge,
        )
        self._learn(count, len(payload))
        if count > 1 and len(payload) > min(2 * self._limit, self._largest):
            for half in _halves(groups, count // 2):
                yield from self.packets(half)
            return
        if len(payload) > self._largest:
            raise self._too_large(groups[0][1][0], len(payload))
        yield payload, count

    def _packets_of_batches(self, groups: Groups, count: int) -> Iterator[tuple[bytes, int]]:
        """Payloads of at most MOST_PACKET_BYTES. A larger batch stays whole, unless it is too large
        for this way: then it is sent in slices."""
        if count > 1 and sum(bytes_of(items) for _, items in groups) > MOST_PACKET_BYTES:
            for half in _halves(groups, count // 2):
                yield from self._packets_of_batches(half, sum(len(items) for _, items in half))
            return
        payload = _arrow(groups)
        if len(payload) <= self._largest:
            yield payload, count
            return
        if count > 1:
            halves: Sequence[Groups] = _halves(groups, count // 2)
        else:
            ((partition, (batch,)),) = groups
            half = batch.num_rows // 2
            if not half:
                raise self._too_large(batch, len(payload))
            halves = [[(partition, [each])] for each in (batch.slice(0, half), batch.slice(half))]
        for part in halves:
            yield from self._packets_of_batches(part, sum(len(items) for _, items in part))

    def _too_large(self, item: Any, size: int) -> RoutingFailed:
        error = PyriteError(
            f"an item of {size} bytes is too large for edge {self._edge.name} {self._way}, which "
            f"takes up to {_size(self._largest)}; emit it in parts, or hand over where it is stored"
        )
        return RoutingFailed(self._edge.name, item, error)


def unpacked(payload: bytes | memoryview) -> Iterator[Packet]:
    """The items of a payload, group by group."""
    payload = memoryview(payload).cast("B")
    if payload[0] == _ARROW:
        yield from _unpacked_batches(payload)
        return
    for partition, first, *second in pickle.loads(payload):
        yield Packet(partition, list(zip(first, *second)) if second else first)


_ARROW: Final = 0xFE
"""The first byte of a payload with batches. A pickle starts with another byte."""


def _arrow(groups: Groups) -> bytes:
    from pyrite.columns.packing.ipc import packed_buffer

    header = pickle.dumps([(partition, len(items)) for partition, items in groups], 5)
    header += bytes(-len(header) % 8)  # so that what follows is aligned
    batches = memoryview(packed_buffer(chain.from_iterable(items for _, items in groups)))
    return b"".join([bytes([_ARROW]), len(header).to_bytes(7, "little"), header, batches])


def _unpacked_batches(payload: memoryview) -> Iterator[Packet]:
    start = 8 + int.from_bytes(payload[1:8], "little")
    batches = iter(batches_of(payload[start:]))
    for partition, count in pickle.loads(payload[8:start]):
        yield Packet(partition, list(islice(batches, count)))


def _packed(partition: int | None, items: list[Any]) -> tuple[Any, ...]:
    if set(map(type, items)) == {tuple} and set(map(len, items)) == {2}:
        firsts, seconds = zip(*items)
        return partition, list(firsts), list(seconds)
    return partition, items


def _halves(groups: Groups, count: int) -> tuple[Groups, Groups]:
    """The first `count` items, and the others."""
    first: Groups = []
    for at, (partition, items) in enumerate(groups):
        if len(items) >= count:
            rest: Groups = [(partition, items[count:])] if len(items) > count else []
            return [*first, (partition, items[:count])], [*rest, *groups[at + 1 :]]
        first.append((partition, items))
        count -= len(items)
    return first, []


def _size(count: int) -> str:
    """
    >>> _size(1 << 30), _size(8 << 20), _size(1000)
    ('1 GB', '8 MB', '1000 bytes')
    """
    for unit, power in (("GB", 30), ("MB", 20)):
        if count >= 1 << power:
            return f"{count / (1 << power):.3g} {unit}"
    return f"{count} bytes"
