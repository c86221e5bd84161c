"""read_items: any Python iterable as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.ready_made import Source

T = TypeVar("T")


def read_items(iterable: Iterable[T]) -> Source[T]:
    """Emits each item of an iterable once, whatever the parallelism.

    Any number of jobs can read a list, or another iterable that can be iterated again. Only one job
    can read an iterator, such as a generator.

    >>> from pyrite import Pipeline, processors as p
    >>> Pipeline().read_from(p.read_items([1, 2])).collect()
    [1, 2]
    """
    if isinstance(iterable, (Set, Mapping)):
        iterable = list(iterable)  # two processes may iterate equal sets in different orders
    if isinstance(iterable, Iterator):
        return Source(ReadOnce(iterable, [False]))
    try:
        iter(iterable)
    except TypeError:
        raise InvalidDAG(
            f"read_items() needs an iterable, such as a list; got {shorten(iterable)}"
        ) from None
    return Source(ReadItems(iterable))


@dataclass(frozen=True, slots=True)
class ReadItems(ReadStep):
    items: Iterable[Any]

    @property
    def may_hold_none(self) -> bool:  # type: ignore[override]
        return not isinstance(self.items, (range, str, bytes))

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        return share_of(self.items, context)


@dataclass(frozen=True, slots=True)
class ReadOnce(ReadStep):
    """Reads an iterator. It cannot be divided, so the first processor emits all of it."""

    items: Iterator[Any]
    taken: list[bool]
    ahead: list[Any] = field(default_factory=list)
    """The items that were looked at before a job has read the iterator. The job gets them first."""

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        return iter(()) if context.global_index else self.take(context.vertex_name)

    def take(self, vertex: str) -> Iterator[Any]:
        """All items. They can be taken only once."""
        self._check(vertex)
        self.taken[0] = True
        return _in_turn(self.ahead, self.items) if self.ahead else self.items

    def first(self, count: int, vertex: str) -> list[Any]:
        """The first items. They are not used up."""
        self._check(vertex)
        self.ahead.extend(islice(self.items, max(count - len(self.ahead), 0)))
        return self.ahead[:count]

    def _check(self, vertex: str) -> None:
        if self.taken[0]:
            raise ProcessorError(
                f"vertex '{vertex}' reads {shorten(self.items)}, an iterator that an earlier "
                "execution has used up; give read_items() a list, or another iterable that can be "
                "read more than once"
            )


def _in_turn(first: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    yield from first
    yield from rest


CAN_BE_SLICED = (list, tuple, range, str, bytes)
"""Iterables whose slices have the same items as they have, and always the same."""


def share_of(items: Iterable[Any], context: ProcessorContext) -> Iterator[Any]:
    """The items that this processor of n reads: every n-th item, starting at its index.

    Other iterables than plain sequences may return other items, or another order, each time they
    are iterated. So one processor reads all of their items.
    """
    index, step = context.global_index, context.total_parallelism
    if step == 1:
        return iter(items)
    if isinstance(items, CAN_BE_SLICED):
        return iter(items[index::step])
    return iter(()) if index else iter(items)
