"""The items of two runs are compared whatever their order, and whatever they are."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.pipeline.looking.comparing import Difference, difference, only_in
from pyrite.pipeline.looking.types import types_of

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.tuples(inside, inside)
        | st.dictionaries(st.text(max_size=2), inside, max_size=3)
    ),
    max_leaves=8,
)


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


class Called(Plain):
    def __call__(self) -> int:
        return self.n


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: float


@given(st.lists(VALUES, max_size=8), st.randoms())
def test_copies_in_another_order_are_equal(items: list[Any], choice: random.Random) -> None:
    others = copy.deepcopy(items)
    choice.shuffle(others)
    assert difference(items, others) is Difference.NONE
    assert not only_in(items, others)


@given(st.lists(VALUES, max_size=5), VALUES)
def test_one_more_item_is_a_difference(items: list[Any], more: Any) -> None:
    assert difference(items, [*items, more]) is Difference.ITEMS
    assert len(only_in([*items, more], items)) == 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.randoms())
def test_sums_in_another_order_differ_by_rounding_at_most(
    numbers: list[float], choice: random.Random
) -> None:
    others = list(numbers)
    choice.shuffle(others)
    one, two = [("k", sum(numbers))], [("k", sum(others))]
    assert difference(one, two) <= Difference.ROUNDING


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([Plain(1)], [Plain(1)], Difference.NONE),
        ([Plain(1)], [Plain(2)], Difference.ITEMS),
        ([Called(1)], [Called(1)], Difference.NONE),
        ([len, Plain], [Plain, len], Difference.NONE),
        ([Color.RED], [Color.BLUE], Difference.ITEMS),
        ([Point(1.0)], [Point(1.0 + 1e-12)], Difference.ROUNDING),
        ([0.1 + 0.2, 5], [5, 0.3], Difference.ROUNDING),
        ([{"a": 0.1 + 0.2}], [{"a": 0.3}], Difference.ROUNDING),
        ([("k", [1, 2])], [("k", [2, 1])], Difference.LIST_ORDER),
        ([("k", [1.0, 0.3])], [("k", [0.1 + 0.2, 1.0])], Difference.LIST_ORDER),
        ([(1, 2)], [(2, 1)], Difference.ITEMS),
        ([[1, 2]], [(1, 2)], Difference.ITEMS),
        ([{1, 2}], [{2, 1}], Difference.NONE),
        ([1], [1.0], Difference.NONE),
        ([1.0], [1.1], Difference.ITEMS),
        ([1, 1, 2], [1, 2, 2], Difference.ITEMS),
    ],
    ids=str,
)
def test_kinds_of_differences(one: list[Any], two: list[Any], expected: Difference) -> None:
    assert difference(one, two) is expected
    assert difference(two, one) is expected


def test_arrays_are_compared_by_their_elements() -> None:
    numpy = pytest.importorskip("numpy")
    assert difference([numpy.array([1, 2])], [numpy.array([1, 2])]) is Difference.NONE
    assert difference([numpy.array([1, 2])], [numpy.array([1, 3])]) is Difference.ITEMS


class Broken(dict[str, int]):
    def items(self) -> Any:
        raise ValueError("broken")


def test_values_that_cannot_be_looked_into_are_compared_as_well_as_can_be() -> None:
    around: list[Any] = [1]
    around.append(around)
    assert difference([around], [copy.deepcopy(around)]) is Difference.NONE
    assert difference([Broken()], [1]) is Difference.ITEMS
    assert types_of([Broken()]) == "Broken"
