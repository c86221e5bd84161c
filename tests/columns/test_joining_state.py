"""Snapshots of joins, and what they leave on disk."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.joining.joining import Joining
from pyrite.columns.joining.spec import HOWS, JoinHow, JoinSpec
from tests.columns.joined_rows import comparable, expected, joined, sides


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_another_join_continues_from_a_snapshot(how: JoinHow, data: st.DataObject) -> None:
    """The snapshot is taken before any frame of either side."""
    kind = data.draw(st.sampled_from([pa.int64(), pa.string()]))
    left, right = sides(data, [kind])
    spec = JoinSpec(("k0",), ("k0",), how)
    budget = data.draw(st.sampled_from([None, 0, 100]))
    moment = data.draw(st.integers(0, len(left) + len(right)))
    order = Random(data.draw(st.integers(0, 9)))
    joining = Joining(spec, budget=budget)
    made: list[Any] = []
    for number, frame in enumerate([*right, *left]):
        if number == moment:
            joining = continued(joining, spec, budget, order)
        if number < len(right):
            joining.hold(frame)
        else:
            made += joining.match(frame)
    if moment == len(left) + len(right):
        joining = continued(joining, spec, budget, order)
    made += joining.rest()
    joining.close()
    rows = comparable(tuple(row.values()) for frame in made for row in as_batch(frame).to_pylist())
    assert Counter(rows) == Counter(expected(spec, left, right))


def continued(joining: Joining, spec: JoinSpec, budget: int | None, order: Random) -> Joining:
    """A new join with the state of another."""
    state = list(joining.save())
    joining.close()
    order.shuffle(state)
    other = Joining(spec, budget=budget)
    for key, batch in state:
        other.restore(key, batch)
    return other


def test_a_key_with_more_rows_than_fit_into_memory_is_joined_in_blocks() -> None:
    right = [pa.record_batch({"k": pa.array([1] * 500), "r": range(n, n + 500)}) for n in (0, 500)]
    left = [pa.record_batch({"k": pa.array([1, 2] * 20), "l": range(40)})]
    for how in HOWS:
        spec = JoinSpec(("k",), ("k",), how)
        rows = Counter(joined(spec, left, right, "arrow", budget=2_000))
        assert rows == Counter(expected(spec, left, right))


def test_parts_that_are_too_large_are_divided_again() -> None:
    numbers = pa.array(range(3_000), pa.int64())
    right = [pa.record_batch({"k": numbers.slice(n, 500)}) for n in range(0, 3_000, 500)]
    spec = JoinSpec(("k",), ("k",))
    rows = joined(spec, [pa.record_batch({"k": numbers})], right, "arrow", budget=2_000)
    assert sorted(rows) == [(n,) for n in range(3_000)]


def test_a_join_that_is_closed_leaves_no_file_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    joining = Joining(JoinSpec(("k",), ("k",)), budget=0)
    joining.hold(pa.record_batch({"k": range(5_000)}))
    list(joining.match(pa.record_batch({"k": range(5_000)})))
    rest: Any = joining.rest()
    next(rest)
    assert len(os.listdir("/proc/self/fd")) > before
    rest.close()
    joining.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_columns_of_a_right_side_without_rows_survive_a_snapshot() -> None:
    words = pa.array(["a", "b"]).dictionary_encode()
    right = pa.record_batch({"k": pa.array([1, 2]), "r": words}).slice(0, 0)
    spec = JoinSpec(("k",), ("k",), "left")
    joining = Joining(spec, budget=0)
    joining.hold(right)
    joining = continued(joining, spec, 0, Random(1))
    made = [*joining.match(pa.record_batch({"k": [1]})), *joining.rest()]
    joining.close()
    assert [as_batch(frame).to_pylist() for frame in made] == [[{"k": 1, "r": None}]]
