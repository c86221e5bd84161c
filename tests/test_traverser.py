"""A traverser gives its items, then None for ever; its transformations are lazy."""

from __future__ import annotations

import itertools

import pytest

from pyrite import ProcessorError, Traverser, traverse


def test_next_gives_the_items_and_then_none_for_ever() -> None:
    traverser = traverse([1, 2])
    assert [traverser.next() for _ in range(4)] == [1, 2, None, None]


def test_transformations_chain() -> None:
    traverser = (
        traverse(range(10))
        .filter(lambda n: n % 2)
        .map(lambda n: n * 10)
        .flat_map(lambda n: [n, n + 1])
        .append(0)
    )
    assert list(traverser) == [10, 11, 30, 31, 50, 51, 70, 71, 90, 91, 0]


def test_take_while_ends_at_the_first_item_that_does_not_hold() -> None:
    assert list(traverse([1, 2, 9, 3]).take_while(lambda n: n < 5)) == [1, 2]


def test_transformations_are_lazy() -> None:
    endless = traverse(itertools.count(1)).map(lambda n: n * n).filter(lambda n: n % 2 == 0)
    assert [endless.next() for _ in range(3)] == [4, 16, 36]


def test_flat_map_takes_traversers_and_iterables() -> None:
    assert list(traverse([1, 2]).flat_map(lambda n: traverse([n] * n))) == [1, 2, 2]
    with pytest.raises(
        ProcessorError,
        match=r"<function .*test_traverser.py line \d+> must be an iterable or a Traverser; got 1",
    ):
        list(traverse([1]).flat_map(lambda n: n))  # type: ignore[arg-type, return-value]


def test_none_inside_is_an_error_and_not_an_end() -> None:
    with pytest.raises(ProcessorError, match="None"):
        traverse([None]).next()
    with pytest.raises(ProcessorError, match="returned None"):
        traverse([1]).map(lambda n: None).next()


def test_a_subclass_need_only_define_next() -> None:
    class Countdown(Traverser[int]):
        left = 3

        def next(self) -> int | None:
            self.left -= 1
            return self.left + 1 if self.left >= 0 else None

    assert list(Countdown().map(str)) == ["3", "2", "1"]


def test_what_cannot_be_iterated_cannot_be_traversed() -> None:
    with pytest.raises(ProcessorError, match="must be an iterable"):
        traverse(3)  # type: ignore[arg-type]


def test_a_function_that_raises_stop_iteration_does_not_end_the_sequence_silently() -> None:
    def stops(n: int) -> int:
        if n == 2:
            raise StopIteration
        return n

    for traverser in (traverse([1, 2, 3]).map(stops), traverse([1, 2, 3]).filter(stops)):
        with pytest.raises(RuntimeError):
            list(traverser)
