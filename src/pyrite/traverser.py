"""Traverser: a lazy sequence that hands out one item at a time, so that emitting it can stop and go
on at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten

T = TypeVar("T")
R = TypeVar("R")


class Traverser(Generic[T]):
    """A sequence of items that are not None. `next()` gives the next one, and None for ever once
    there are no more.

    A subclass need only define `next`. The methods that transform are lazy, and share the position
    with the traverser they were called on.

    >>> evens = traverse([1, 2, 3, 4]).filter(lambda n: n % 2 == 0)
    >>> evens.next(), evens.next(), evens.next(), evens.next()
    (2, 4, None, None)
    """

    def next(self) -> T | None:
        raise NotImplementedError(
            f"{type(self).__name__} must define next(), which returns an item or None"
        )

    def map(self, function: Callable[[T], R]) -> Traverser[R]:
        """Each item passed through a function."""
        return traverse(_not_none((function(item) for item in self), function))

    def filter(self, predicate: Callable[[T], Any]) -> Traverser[T]:
        """The items for which the predicate holds."""
        return traverse(item for item in self if predicate(item))

    def flat_map(self, function: Callable[[T], Traverser[R] | Iterable[R]]) -> Traverser[R]:
        """The items of what the function returns for each item: a traverser, or anything that can
        be iterated."""
        return traverse(each for item in self for each in iterate(function(item), function))

    def take_while(self, predicate: Callable[[T], Any]) -> Traverser[T]:
        """The items before the first for which the predicate does not hold."""

        def items() -> Iterator[T]:
            for item in self:
                if not predicate(item):
                    return
                yield item

        return traverse(items())

    def append(self, item: T) -> Traverser[T]:
        """The items, and one more after the last."""

        def items() -> Iterator[T]:
            yield from self
            yield item

        return traverse(items())

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            item = self.next()
        except StopIteration as error:  # it would end the sequence, and nobody would know
            raise ProcessorError(
                f"next() of {describe(type(self))} raised StopIteration; a traverser ends by "
                "returning None"
            ) from error
        if item is None:
            raise StopIteration
        return item


def traverse(iterable: Iterable[T]) -> Traverser[T]:
    """A traverser over anything that can be iterated.

    >>> letters = traverse("ab").append("c")
    >>> [letters.next() for _ in range(4)]
    ['a', 'b', 'c', None]
    """
    if isinstance(iterable, Traverser):
        return iterable
    return _IteratorTraverser(iterate(iterable, None))


def iterate(value: Any, function: Callable[..., Any] | None) -> Iterator[Any]:
    """An iterator over what a function returned, or an error that names the function."""
    try:
        return iter(value)
    except TypeError:
        who = (
            f"return value of {describe(function)}" if function is not None else "what is traversed"
        )
        raise ProcessorError(
            f"{who} must be an iterable or a Traverser; got {shorten(value)}"
        ) from None


class _IteratorTraverser(Traverser[T]):
    def __init__(self, iterator: Iterator[T]) -> None:
        self._iterator = iterator
        self._ended = False

    def next(self) -> T | None:
        if self._ended:
            return None
        for item in self._iterator:
            if item is None:
                raise ProcessorError(
                    "a traverser met None, which stands for its end; leave None out of what it "
                    "traverses"
                )
            return item
        self._ended = True
        return None

    def __iter__(self) -> Iterator[T]:
        return self._iterator  # what takes many items at once need not come through next()


def _not_none(items: Iterable[R], function: Callable[..., R]) -> Iterator[R]:
    for item in items:
        if item is None:
            raise ProcessorError(
                f"{describe(function)} returned None, which a traverser cannot hold; filter such "
                "items out"
            )
        yield item
