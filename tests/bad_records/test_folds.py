"""Folds whose errors are handled, compared with plain Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyrite
from pyrite import Instance, Pipeline, Stage, agg
from pyrite import processors as p
from tests.bad_records.light import bad_list, run
from tests.pipeline.light import pool as pool

ITEMS = st.lists(st.integers(-30, 30), max_size=40)


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def key(n: int) -> int | None:
    """None is a key, too."""
    return 30 // (n % 7) % 3 or None


def value(n: int) -> int:
    return 60 // (n % 5)


def good(items: list[int]) -> list[int]:
    return [n for n in items if n % 7 and n % 5]


AGGREGATES: Any = (
    agg.to_list(),
    agg.count(),
    agg.sum(value),
    agg.to_set(),
    agg.top(2, key=value),
    agg.to_dict(lambda n: n, value),
    agg.mean(value),
    agg.count_distinct(value),
)


def expected(items: list[int]) -> tuple[Any, ...]:
    values = [value(n) for n in items]
    return (
        sorted(items),
        len(items),
        sum(values),
        set(items),
        sorted(values)[::-1][:2],
        dict(zip(items, values)),
        pytest.approx(sum(values) / len(values), nan_ok=True) if values else pytest.approx(0),
        len(set(values)),
    )


def comparable(result: tuple[Any, ...]) -> tuple[Any, ...]:
    listed, count, total, unique, top, *rest = result
    return sorted(listed), count, total, unique, [value(n) for n in top], *rest


def results(pool: Instance, stage: Stage[Any], pipe: Pipeline) -> tuple[list[Any], list[int]]:
    for name in ("out", "bad"):
        pool.list(name).clear()
    stage.write_to(p.write_list("out"))
    run(pool, pipe)
    return list(pool.list("out")), sorted(letter.item for letter in pool.list("bad"))


def test_groups(pool: Instance) -> None:
    @settings(max_examples=25, deadline=None)
    @given(ITEMS)
    def check(items: list[int]) -> None:
        pipe = Pipeline()
        grouped = pipe.read_from(items).group_by(key, on_error=bad_list())
        found, bad = results(pool, grouped.aggregate(*AGGREGATES), pipe)
        groups = defaultdict(list)
        for n in good(items):
            groups[key(n)].append(n)
        assert {k: comparable(tuple(rest)) for k, *rest in found} == {
            k: expected(group) for k, group in groups.items()
        }
        assert bad == sorted(n for n in items if n not in good(items))

    check()


def test_all_items(pool: Instance) -> None:
    @settings(max_examples=25, deadline=None)
    @given(ITEMS.filter(lambda items: any(n % 5 for n in items)))
    def check(items: list[int]) -> None:
        pipe = Pipeline()
        stage = pipe.read_from(items).aggregate(*AGGREGATES, on_error=bad_list())
        (found,), bad = results(pool, stage, pipe)
        assert comparable(found) == expected([n for n in items if n % 5])
        assert bad == sorted(n for n in items if not n % 5)

    check()


def test_joins(pool: Instance) -> None:
    @settings(max_examples=25, deadline=None)
    @given(ITEMS, ITEMS, st.booleans())
    def check(left: list[int], right: list[int], broadcast: bool) -> None:
        pipe = Pipeline()
        joined = pipe.read_from(left).join(
            pipe.read_from(right), left=key, right=key, broadcast=broadcast, on_error=bad_list()
        )
        found, _ = results(pool, joined, pipe)
        pairs = [(n, key(n)) for n in left if n % 7]
        others = [(n, key(n)) for n in right if n % 7]
        assert sorted(found) == sorted(
            (n, m) for n, k in pairs for m, other in others if k is not None and k == other
        )

    check()


def test_an_aggregate_of_ones_own_that_raises_before_it_changes_its_state(pool: Instance) -> None:
    def add(state: list[int], n: int) -> list[int]:
        state.append(value(n))
        return state

    own = agg.Aggregate(list, add, lambda one, two: one + two, sum)
    total = Pipeline().read_from([1, 5, 2]).aggregate(own, agg.count(), on_error=pyrite.skip())
    assert total.collect() == [(value(1) + value(2), 2)]


def appending(of: Any = None, refuses: int | None = None, **options: Any) -> Any:
    """An aggregate of one's own that changes its state in place."""

    def add(state: list[int], n: int) -> list[int]:
        if n == refuses:
            raise ValueError(n)
        state.append(n)
        return state

    return agg.Aggregate(list, add, lambda one, two: one + two, of=of, **options)


@pytest.mark.parametrize("other", [agg.sum(value), agg.min(value), appending(of=value)])
def test_an_item_that_another_aggregate_refuses_is_not_in_a_state_of_ones_own(other: Any) -> None:
    for aggregates in ((appending(), other), (other, appending())):
        stage = Pipeline().read_from([1, 5, 2]).aggregate(*aggregates, on_error=pyrite.skip())
        ((*results,),) = stage.collect()
        assert [1, 2] in results


def test_an_item_is_not_in_a_state_that_a_reduce_changes_in_place() -> None:
    both: Any = agg.reduce(lambda one, two: (one.extend(two), one)[1])
    lists = Pipeline().read_from([[1], [0], [2]])
    stage = lists.aggregate(both, agg.sum(lambda n: 4 // n[0]), on_error=pyrite.skip())
    assert stage.collect() == [([1, 2], 6)]


@pytest.mark.parametrize("grouped", [True, False])
def test_an_item_that_is_half_counted_fails_the_job(grouped: bool) -> None:
    numbers = Pipeline().read_from([1, 5, 2])
    aggregates = appending(), appending(refuses=5)
    stage: Any = (
        numbers.group_by(lambda n: "all", on_error=pyrite.skip()).aggregate(*aggregates)
        if grouped
        else numbers.aggregate(*aggregates, on_error=pyrite.skip())
    )
    with pytest.raises(pyrite.JobFailed, match=r"item 5: .* check=.* ValueError: 5"):
        stage.collect()


def test_a_group_that_never_came_to_be_is_not_half_counted() -> None:
    grouped = Pipeline().read_from([1, 5, 2]).group_by(abs, on_error=pyrite.skip())
    stage = grouped.aggregate(appending(), appending(refuses=5))
    assert sorted(stage.collect()) == [(1, [1], [1]), (2, [2], [2])]


def test_an_item_that_one_of_several_pure_aggregates_refuses_is_left_out() -> None:
    def add(state: tuple[int, ...], n: int) -> tuple[int, ...]:
        return (*state, 4 // n)

    own = agg.Aggregate(tuple, add, lambda one, two: one + two)
    stage = (
        Pipeline()
        .read_from([1, 0, 2])
        .aggregate(agg.reduce(lambda one, two: one + two), own, on_error=pyrite.skip())
    )
    assert stage.collect() == [(3, (4, 2))]
