"""read_items: any Python iterable as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten
from pyrite.processors.chain import StepSupplier
from pyrite.processors.steps import Source


def read_items(iterable: Iterable[Any]) -> StepSupplier:
    """Emits the items of an iterable, each once in all, whatever the parallelism.

    A list or anything else that can be iterated again can be read by any number of jobs; an
    iterator, as a generator is one, by one job only.
    """
    if isinstance(iterable, (Set, Mapping)):
        iterable = list(iterable)  # two processes may iterate equal sets in different orders
    if isinstance(iterable, Iterator):
        return StepSupplier(ReadOnce(iterable, [False]))
    try:
        iter(iterable)
    except TypeError:
        raise InvalidDAG(
            f"read_items() needs something to iterate over; got {shorten(iterable)}"
        ) from None
    return StepSupplier(ReadItems(iterable))


@dataclass(frozen=True, slots=True)
class ReadItems(Source):
    items: Iterable[Any]

    @property
    def may_hold_none(self) -> bool:  # type: ignore[override]
        return not isinstance(self.items, (range, str, bytes))

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        return share_of(self.items, context)


@dataclass(frozen=True, slots=True)
class ReadOnce(Source):
    """An iterator cannot be divided: the first processor emits all of it."""

    items: Iterator[Any]
    taken: list[bool]

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        return iter(()) if context.global_index else self.take(context.vertex_name)

    def take(self, vertex: str) -> Iterator[Any]:
        if self.taken[0]:
            raise ProcessorError(
                f"the items of vertex '{vertex}' come from {shorten(self.items)}, which an earlier "
                "execution has "
                f"used up; give read_items() a list, or something else that can be iterated again"
            )
        self.taken[0] = True
        return self.items


_CAN_BE_SLICED = (list, tuple, range, str, bytes)


def share_of(items: Iterable[Any], context: ProcessorContext) -> Iterator[Any]:
    """Every n-th item, from this processor's index on, of n processors.

    What is not a plain sequence may give other items, or in another order, each time it is
    iterated: one processor reads it all.
    """
    index, step = context.global_index, context.total_parallelism
    if step == 1:
        return iter(items)
    if isinstance(items, _CAN_BE_SLICED):
        return iter(items[index::step])
    return iter(()) if index else iter(items)
