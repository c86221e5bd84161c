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
from pyrite.exchange.packing import pickled
from pyrite.wire.messages import Payload

Groups = list[tuple[int | None, list[Any]]]

MOST_ITEMS: Final = 8192
LARGEST_ITEM: Final = 1 << 30
FIRST_GUESS: Final = 64
"""Items in the first packet of an edge, as long as their size is unknown."""


class Packing:
    """Makes packets of about the size in the edge's settings. It learns from each packet how many
    items that is."""

    __slots__ = ("_edge", "_limit", "items_per_packet")

    def __init__(self, edge: EdgePlan) -> None:
        self._edge = edge
        self._limit = edge.settings.packet_size_limit
        self.items_per_packet = FIRST_GUESS

    def packets(self, groups: Groups) -> Iterator[tuple[bytes, int]]:
        """The payloads for some items, each with the number of its items."""
        count = sum(len(items) for _, items in groups)
        payload = pickled(
            [_packed(partition, items) for partition, items in groups],
            chain.from_iterable(items for _, items in groups),
            self._edge,
        )
        self.items_per_packet = max(1, min(MOST_ITEMS, self._limit * count // len(payload)))
        if count > 1 and len(payload) > 2 * self._limit:
            for half in _halves(groups, count // 2):
                yield from self.packets(half)
            return
        if len(payload) > LARGEST_ITEM:
            item = groups[0][1][0]
            error = PyriteError(
                f"an item of {len(payload)} bytes is too large for edge {self._edge.name} between "
                "members, which takes up to 1 GB; emit it in parts, or hand over where it is stored"
            )
            raise RoutingFailed(self._edge.name, item, error)
        yield payload, count


def unpacked(payload: Payload) -> Iterator[Packet]:
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
