"""Turns the items of a sender into payloads of packets, and payloads into items.

A payload is a list of groups. A group has the partition that its items belong to, or None, and the
items: as a list; or, if all are pairs, as two lists, of their halves.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from pyrite.engine.ends import Packet
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.errors import PyriteError
from pyrite.exchange.packing import pickled, pickled_pairs

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
            item = groups[0][1][0]
            error = PyriteError(
                f"an item of {len(payload)} bytes is too large for edge {self._edge.name} "
                f"{self._way}, which takes up to {_size(self._largest)}; emit it in parts, or hand "
                "over where it is stored"
            )
            raise RoutingFailed(self._edge.name, item, error)
        yield payload, count


def unpacked(payload: bytes | memoryview) -> Iterator[Packet]:
    """The items of a payload, group by group."""
    for partition, first, *second in pickle.loads(payload):
        yield Packet(partition, list(zip(first, *second)) if second else first)


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
