"""Joins and co-groups on Spark hold one partition at a time, not a whole side."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pyrite import Instance, Pipeline, Stage, agg
from pyrite.processors.joins.hash_join import HOWS, How

ROWS = 40_000
MEMBERS = 2
FEW = 5_000
"""More than one of the partitions of a task and what waits to be emitted, but much less than the
ROWS / MEMBERS rows of a side that a task gets."""


class Row:
    """A row that counts how many of its kind exist in this process."""

    alive = 0

    def __init__(self, key: int) -> None:
        self.key = key
        self.text = str(key) * 50
        Row.alive += 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        Row.alive += 1

    def __del__(self) -> None:
        Row.alive -= 1


def sides() -> tuple[Stage[int], Stage[Row]]:
    pipe = Pipeline()
    return pipe.read_from(range(0, ROWS, 10)), pipe.read_from(range(ROWS)).map(Row)


def most_alive(stage: Stage[Any], pyr: Instance) -> int:
    """How many rows exist at a time in the process of a task where items come out of a stage."""
    counts = stage.map(lambda item: Row.alive).aggregate(agg.count(), agg.max())
    ((count, most),) = counts.collect(on=pyr)
    assert count > 1000
    return most


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_join_holds_one_partition_of_its_right_side(how: How, pyr: Instance) -> None:
    left, right = sides()
    joined: Stage[Any] = left.join(right, left=lambda n: n, right=lambda r: r.key, how=how)
    assert most_alive(joined, pyr) < FEW


def test_a_join_does_not_hold_its_left_side(pyr: Instance) -> None:
    """All rows have the same key, so one task gets them all, in packets of up to 32,768."""
    pipe = Pipeline()
    rows, one = pipe.read_from(range(3 * ROWS)).map(Row), pipe.read_from([0])
    assert most_alive(rows.join(one, left=lambda row: 0, right=lambda n: n), pyr) < 1.5 * ROWS


def test_a_co_group_holds_one_partition(pyr: Instance) -> None:
    left, right = sides()
    groups = left.co_group(right, left=lambda n: n, right=lambda r: r.key)
    assert most_alive(groups, pyr) < FEW


@pytest.mark.parametrize("how", HOWS)
def test_a_join_of_many_partitions_is_that_of_a_light_job(how: How, pyr: Instance) -> None:
    pipe = Pipeline()
    some, more = pipe.read_from(range(0, 3000, 2)), pipe.read_from(range(0, 3000, 3))
    joined: Stage[Any] = some.join(
        more, left=lambda n: n or None, right=lambda n: n or None, how=how
    )
    assert Counter(joined.collect(on=pyr)) == Counter(joined.collect())
