"""The edges that the steps of a pipeline make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyrite.dag import Edge
from pyrite.processors.groups.aggregates import Nothing
from pyrite.processors.groups.aggregating import check_key, first_of

Shape: TypeAlias = Callable[[Edge], Edge]
"""Sets how an edge carries items."""


def local(edge: Edge) -> Edge:
    return edge


def side_by_side(edge: Edge) -> Edge:
    """Keeps each item with the processor of the same index, and so the order of items."""
    return edge.isolated()


def by_key(edge: Edge) -> Edge:
    """For pairs: all pairs with the same first element go to one processor in the cluster."""
    return edge.distributed().partitioned(first_of)


def to_one(edge: Edge) -> Edge:
    """Sends all items to one processor of the same member, in their order."""
    return edge.all_to_one()


def all_to_one(edge: Edge) -> Edge:
    """Sends all items to one processor in the cluster."""
    return edge.distributed().all_to_one()


def anywhere(edge: Edge) -> Edge:
    return edge.distributed().unicast()


def to_all(edge: Edge) -> Edge:
    return edge.distributed().broadcast()


def by_columns(columns: Sequence[str]) -> Shape:
    """For batches: all rows with the same values go to one processor in the cluster."""
    return lambda edge: edge.distributed().partitioned(columns=columns, nulls=True)


def afterwards(shape: Shape) -> Shape:
    """The same shape, for an edge that is read when the other has ended."""
    return lambda edge: shape(edge).priority(1)


def partitioned_by(key: Callable[[Any], Any]) -> Shape:
    return lambda edge: edge.distributed().partitioned(KeyOrNone(key))


@dataclass(frozen=True, slots=True)
class KeyOrNone:
    """The key function of an edge for a key that may be None."""

    key: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        key = self.key(item)
        return Nothing.KEY if key is None else key


@dataclass(frozen=True, slots=True)
class ValidKey:
    """The key of an item. Raises InvalidKey if no partitioned edge can carry it."""

    key: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        key = self.key(item)
        check_key(key)
        return key
