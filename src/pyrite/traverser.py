"""Traverser: a lazy sequence that returns one item at a time, so that a processor can stop emitting
it at any item and continue later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten

T = TypeVar("T")
R = TypeVar("R")


class Traverser(Generic[T]):
    """A sequence of items that are not None. `next()` returns the next item, and None after the
    last.

    A subclass only needs to define `next`. Methods such as `map` are lazy, and they share the
    position of the traverser that they are called on.

    >>> evens = traverse([1, 2, 3, 4]).filter(lambda n: n % 2 == 0)
    >>> evens.next(), evens.next(), evens.next(), evens.next()
    (2, 4, None, None)
    """

    def next(self) -> T | None:
        raise NotImplementedError(
            f"{type(self).__name__} must define next(), which returns an item or None"
        )

    def map(self, function: Callable[[T], R]) -> Traverser[R]:
        """The results of a function for each item."""
        return traverse(_not_none((function(item) for item in self), function))

    def filter(self, predicate: Callable[[T], Any]) -> Traverser[T]:
        """The items for which the predicate is true."""
        return traverse(item for item in self if predicate(item))

    def flat_map(self, function: Callable[[T], Traverser[R] | Iterable[R]]) -> Traverser[R]:
        """The items of the traversers or other iterables that the function returns for each
        item."""
        return traverse(each for item in self for each in iterate(function(item), function))

    def take_while(self, predicate: Callable[[T], Any]) -> Traverser[T]:
        """The items before the first item for which the predicate is false."""

        def items() -> Iterator[T]:
            for item in self:
                if not predicate(item):
                    return
                yield item

        return traverse(items())

    def append(self, item: T) -> Traverser[T]:
        """The items, followed by one more item."""

        def items() -> Iterator[T]:
            yield from self
            yield item

        return traverse(items())

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            item = self.next()
        except StopIteration as error:  # it would end the iteration silently
            raise ProcessorError(
                f"next() of {describe(type(self))} raised StopIteration; a traverser ends by "
                "returning None"
            ) from error
        if item is None:
            raise StopIteration
        return item


def traverse(iterable: Iterable[T]) -> Traverser[T]:
    """A traverser over any iterable.

    >>> letters = traverse("ab").append("c")
    >>> [letters.next() for _ in range(4)]
    ['a', 'b', 'c', None]
    """
    if isinstance(iterable, Traverser):
        return iterable
    return _IteratorTraverser(iterate(iterable, None))


def iterate(value: Any, function: Callable[..., Any] | None) -> Iterator[Any]:
    """An iterator over the value that `function` returned. Raises an error that names the function
    if the value cannot be iterated."""
    try:
        return iter(value)
    except TypeError:
        who = (
            f"return value of {describe(function)}"
            if function is not None
            else "argument of traverse()"
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
                    "a traverser cannot have None as an item, because None means its end; filter "
                    "None out of the iterable that it reads"
                )
            return item
        self._ended = True
        return None

    def __iter__(self) -> Iterator[T]:
        return self._iterator  # faster than next() for each item


def _not_none(items: Iterable[R], function: Callable[..., R]) -> Iterator[R]:
    for item in items:
        if item is None:
            raise ProcessorError(
                f"{describe(function)} returned None, but a traverser cannot have None as an item; "
                "filter such items out"
            )
        yield item
