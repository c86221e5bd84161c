"""The processors behind pipelines keep their promises if the outbox is full and state is saved."""

from __future__ import annotations

from typing import Any

import pytest

from pyrite.errors import ProcessorError
from pyrite.processors.batching import Batch
from pyrite.processors.groups.aggregates import Aggregate
from pyrite.processors.groups.aggregating import AllLocally, AllTotals, GroupLocally, GroupTotals
from pyrite.processors.groups.ordering import Limit, MergeSorted, SortLocally
from pyrite.processors.joins.joining import CoGroup
from pyrite.processors.loops.chain import StepSupplier
from pyrite.testing import verify_processor

COUNT: tuple[Aggregate[Any, int], ...] = (
    Aggregate(lambda: 0, lambda n, item: n + 1, lambda a, b: a + b),
)
TOP: tuple[Aggregate[Any, Any], ...] = (
    Aggregate(list, lambda a, b: [*a, b], lambda a, b: a + b, lambda a: sorted(a)[::-1]),
)
SIDES = [("a", (0, 1)), ("b", (0, 2)), ("a", (1, 3))]


def same(item: object) -> object:
    return item


@pytest.mark.parametrize(
    ("step", "items", "expected"),
    [
        (GroupLocally(same, COUNT), ["a", "b", "a"], [("a", 2), ("b", 1)]),
        (GroupLocally(same, COUNT * 2), ["a", "a"], [("a", [2, 2])]),
        (GroupTotals(COUNT), [("a", 2), ("a", 1)], [("a", 3)]),
        (GroupTotals(COUNT * 2), [("a", [2, 2]), ("a", [1, 5])], [("a", 3, 7)]),
        (AllLocally(COUNT), ["a", "b"], [[2]]),
        (AllTotals(COUNT), [[2], [3]], [5]),
        (AllTotals(TOP, spreads=True), [[[1]], [[3, 2]]], [3, 2, 1]),
        (CoGroup(), SIDES, [("a", [1], [3]), ("b", [2], [])]),
        (SortLocally(None, False), [3, 1], [[1, 3]]),
        (MergeSorted(None, False), [[1, 3], [2]], [1, 2, 3]),
        (SortLocally(None, True), [1, 3], [[3, 1]]),
        (Limit(2), [1, 2, 3], [1, 2]),
    ],
)
def test_folds(step: object, items: list[object], expected: list[object]) -> None:
    verify_processor(StepSupplier(step), items, expected)  # type: ignore[arg-type]


def test_batches() -> None:
    verify_processor(Batch(2), [1, 2, 3], [[1, 2], [3]])


def test_an_unhashable_key_is_named() -> None:
    with pytest.raises(ProcessorError, match="must be hashable"):
        verify_processor(StepSupplier(GroupLocally(same, COUNT)), [[1]], [])
