"""Joins, co-groups, splits and batches give what plain Python gives."""

from __future__ import annotations

import logging
import tracemalloc
import warnings
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import AbstractProcessor, Instance, InvalidDAG, Pipeline, PyriteWarning
from pyrite import processors as p
from pyrite.processors.joins.hash_join import HOWS, How
from pyrite.processors.joins.key_types import may_be_equal
from tests.pipeline.light import Light, pool

__all__ = ["pool"]
ROWS = st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(0, 2)), max_size=8)


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def key(row: tuple[Any, int]) -> Any:
    return row[0]


def by_hand(left: list[Any], right: list[Any], how: How) -> list[Any]:
    def matches(one: Any, other: Any) -> bool:
        return one[0] is not None and one[0] == other[0]

    if how in ("semi", "anti"):
        wanted = how == "semi"
        return [one for one in left if any(matches(one, other) for other in right) is wanted]
    pairs: list[Any] = [(one, other) for one in left for other in right if matches(one, other)]
    if how in ("left", "full"):
        pairs += [(one, None) for one in left if not any(matches(one, o) for o in right)]
    if how == "full":
        pairs += [(None, other) for other in right if not any(matches(o, other) for o in left)]
    return pairs


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_a_join_is_that_of_plain_python(pool: Instance, how: Any, broadcast: bool) -> None:
    if how == "full" and broadcast:
        return

    @settings(max_examples=15, deadline=None)
    @given(ROWS, ROWS)
    def check(left: list[Any], right: list[Any]) -> None:
        pipe = Pipeline()
        one, other = pipe.read_from(left), pipe.read_from(right)
        joined = one.join(other, left=key, right=key, how=how, broadcast=broadcast)
        got = joined.collect(on=Light(pool))  # type: ignore[arg-type]
        assert Counter(got) == Counter(by_hand(left, right, how))

    check()


def test_a_co_group_is_that_of_plain_python(pool: Instance) -> None:
    @settings(max_examples=15, deadline=None)
    @given(ROWS, ROWS)
    def check(left: list[Any], right: list[Any]) -> None:
        pipe = Pipeline()
        groups = pipe.read_from(left).co_group(pipe.read_from(right), left=key, right=key)
        got = groups.collect(on=Light(pool))  # type: ignore[arg-type]
        keys = {row[0] for row in left + right}
        assert {k: (sorted(a), sorted(b)) for k, a, b in got} == {
            k: (sorted(r for r in left if r[0] == k), sorted(r for r in right if r[0] == k))
            for k in keys
        }
        assert len(got) == len(keys)

    check()


@pytest.mark.parametrize("broadcast", [False, True])
def test_a_stage_is_joined_with_itself_and_with_its_branch(broadcast: bool) -> None:
    rows = Pipeline().read_from(range(5000))
    itself = rows.join(rows, left=_same, right=_same, broadcast=broadcast)
    assert itself.count().collect() == [5000]
    branch = rows.filter(lambda n: n % 2)
    assert rows.join(branch, left=_same, right=_same, broadcast=broadcast).count().collect() == [
        2500
    ]


def _same(n: int) -> int:
    return n


def test_both_sides_of_a_join_are_partitioned_and_a_broadcast_side_is_read_first() -> None:
    pipe = Pipeline()
    one, other = pipe.read_from([1]), pipe.read_from([1])
    one.join(other, left=_same, right=_same).write_to(p.noop())
    one.join(other, left=_same, right=_same, broadcast=True).write_to(p.noop())
    dag = pipe.to_dag()
    words = [e.settings.describe() for name in ("join", "join-2") for e in dag.inbound(dag[name])]
    by_key = "distributed partitioned"
    assert words == [by_key, f"{by_key} priority 1", "distributed broadcast", "priority 1"]


def test_joins_that_need_the_ends_of_each_others_sides_are_buffered() -> None:
    """One reads `odd` first and the other `even`: both sources would wait for the other to end."""
    pipe = Pipeline()
    odd, even = pipe.read_from(range(1, 20_000, 2)), pipe.read_from(range(0, 20_000, 2))
    one = odd.join(even, left=lambda n: n - 1, right=_same)
    other = even.join(odd, left=lambda n: n + 1, right=_same)
    one.union(other).write_to(p.write_list("pairs"))
    buffered = [e.name for e in pipe.to_dag().edges if e.settings.buffered]
    assert buffered == ["'join-left -> join'"]
    assert one.union(other).count().collect() == [20_000]


def test_a_key_with_very_many_matches_needs_little_memory() -> None:
    rows = Pipeline().read_from([0] * 700)
    pairs = rows.join(rows, left=_same, right=_same)
    tracemalloc.start()
    try:
        assert pairs.count().collect() == [490_000]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_full_join_cannot_be_broadcast() -> None:
    one = Pipeline().read_from([1])
    with pytest.raises(InvalidDAG, match=r"test_joins.py line .* each processor would emit"):
        one.join(one, left=_same, right=_same, how="full", broadcast=True)


def test_an_unknown_kind_of_join_is_refused() -> None:
    one = Pipeline().read_from([1])
    with pytest.raises(InvalidDAG, match="one of inner, left, full, semi, anti; got 'outer'"):
        one.join(one, left=_same, right=_same, how="outer")  # type: ignore[call-overload]


@pytest.mark.parametrize("broadcast", [False, True])
def test_keys_of_different_types_are_warned_of(
    broadcast: bool, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = Pipeline()
    one, other = pipe.read_from([1, 2]), pipe.read_from(["1"])
    joined = one.join(other, left=_same, right=lambda t: t, broadcast=broadcast, name="by number")
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "pyrite"), pytest.warns(PyriteWarning) as warned:
            assert joined.collect() == []
        (text,) = (str(each.message) for each in warned)
        assert text.startswith("vertex 'by number': the keys of the two sides have different types")
        assert "returned 1 (int) on the left, and" in text
        assert text.endswith("returned '1' (str) on the right")
        assert text in caplog.text


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2], [1.0, 2.0]),
        ([True], [1, 0]),
        ([1], [Decimal(1)]),
        (["a"], ["b"]),
        ([("a", 1)], [("b", 2.5)]),
        ([1, "a"], ["a", 1]),  # the keys of a side have several types
        ([None, 1], [2]),
        ([], ["a"]),
    ],
    ids=str,
)
def test_keys_that_may_be_equal_are_not_warned_of(
    left: list[Any], right: list[Any], broadcast: bool
) -> None:
    pipe = Pipeline()
    one, other = pipe.read_from([(key,) for key in left]), pipe.read_from([(k,) for k in right])
    joined = one.join(other, left=lambda t: t[0], right=lambda t: t[0], broadcast=broadcast)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined.collect()


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), ("a", b"a"), (date(2020, 1, 1), datetime(2020, 1, 1)), ((1, "a"), (1, 2))],
    ids=str,
)
def test_these_types_are_never_equal(one: Any, other: Any) -> None:
    assert not may_be_equal(one, other)
    assert not may_be_equal(other, one)


def test_a_split_calls_its_predicate_once_for_each_item() -> None:
    calls: list[int] = []
    numbers = Pipeline().read_from(range(3000))
    odd, even = numbers.split(lambda n: calls.append(n) or n % 2)
    both = odd.map(lambda n: ("odd", n)).union(even.map(lambda n: ("even", n)), odd.map(str))
    got = both.collect()
    assert Counter(type(each) for each in got) == {tuple: 3000, str: 1500}
    assert all((pair[0] == "odd") == bool(pair[1] % 2) for pair in got if isinstance(pair, tuple))
    assert sorted(calls) == list(range(3000))


def test_a_branch_of_a_split_without_a_sink_is_refused() -> None:
    pipe = Pipeline()
    good, _ = pipe.read_from([1]).split(bool)
    good.write_to(p.noop())
    with pytest.raises(InvalidDAG, match=r"'split'.* leads to no sink"):
        pipe.to_dag()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(), max_size=40), st.integers(1, 7))
def test_batches_hold_all_items_and_only_the_last_is_short(items: list[int], size: int) -> None:
    batches = Pipeline().read_from(items).batch(size).collect()
    assert [n for batch in batches for n in batch] == items
    assert all(len(batch) == size for batch in batches[:-1])
    doubled = Pipeline().read_from(items).map_batches(lambda b: [2 * n for n in b], size=size)
    assert doubled.collect() == [2 * n for n in items]


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    numbers = Pipeline().read_from(range(10_000))
    sample = numbers.sample(0.1, seed=3).collect()
    assert 800 < len(sample) < 1200
    assert numbers.sample(0.1, seed=3).collect() == sample
    assert numbers.sample(0.1, seed=4).collect() != sample


def test_a_processor_of_ones_own_has_its_edge_and_several_inputs() -> None:
    pipe = Pipeline()
    one, other = pipe.read_from([1, 2]), pipe.read_from([3])
    both = one.process(Both, other, edge=lambda edge: edge.distributed().all_to_one())
    both.write_to(p.noop())
    assert sorted(both.collect()) == [(0, 1), (0, 2), (1, 3)]
    dag = pipe.to_dag()
    assert [e.settings.describe() for e in dag.inbound(dag["both"])] == [
        "distributed all-to-one"
    ] * 2


class Both(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.emit((ordinal, item))
