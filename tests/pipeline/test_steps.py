"""Each step gives what plain Python gives, on a pool of any size."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import Instance, JobFailed, Pipeline, Stage, agg
from tests.pipeline.light import Light, pool

__all__ = ["pool"]
T = TypeVar("T")
NUMBERS = st.lists(st.integers(-5, 5), max_size=30)


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def collected(pool: Instance, items: list[Any], steps: Callable[[Stage[Any]], Stage[T]]) -> list[T]:
    return steps(Pipeline().read_from(items)).collect(on=Light(pool))  # type: ignore[arg-type]


def test_a_line_of_plain_steps(pool: Instance) -> None:
    @settings(max_examples=20, deadline=None)
    @given(NUMBERS)
    def check(items: list[int]) -> None:
        got = collected(
            pool,
            items,
            lambda s: (
                s.map(lambda n: n + 1)
                .filter(lambda n: n > 0)
                .filter_map(lambda n: n if n % 3 else None)
                .flat_map(lambda n: [n] * n)
            ),
        )
        kept = [n + 1 for n in items if n + 1 > 0 and (n + 1) % 3]
        assert Counter(got) == Counter(m for n in kept for m in [n] * n)

    check()


def test_grouping(pool: Instance) -> None:
    @settings(max_examples=20, deadline=None)
    @given(NUMBERS)
    def check(items: list[int]) -> None:
        groups: dict[Any, list[int]] = defaultdict(list)
        for n in items:
            groups[key(n)].append(n)
        got = {
            name: dict(collected(pool, items, steps))
            for name, steps in {
                "count": lambda s: s.group_by(key).count(),
                "reduce": lambda s: s.group_by(key).reduce(lambda a, b: a + b),
                "top": lambda s: s.group_by(key).top(2),
                "groups": lambda s: s.group_by(key).map_groups(lambda k, v: [(k, sorted(v))]),
                "values": lambda s: s.group_by(key).map_values(abs).aggregate(agg.max()),
            }.items()
        }
        assert got["count"] == {k: len(v) for k, v in groups.items()}
        assert got["reduce"] == {k: sum(v) for k, v in groups.items()}
        assert got["top"] == {k: sorted(v)[::-1][:2] for k, v in groups.items()}
        assert got["groups"] == {k: sorted(v) for k, v in groups.items()}
        assert got["values"] == {k: max(map(abs, v)) for k, v in groups.items()}

    check()


def key(n: int) -> int | None:
    return n % 3 or None


def test_several_aggregates_of_groups_are_flat(pool: Instance) -> None:
    @settings(max_examples=20, deadline=None)
    @given(NUMBERS)
    def check(items: list[int]) -> None:
        got = collected(
            pool,
            items,
            lambda s: s.group_by(abs).aggregate(agg.count(), agg.sum(), agg.to_set(str)),
        )
        expected = {
            (
                abs(n),
                sum(abs(m) == abs(n) for m in items),
                sum(m for m in items if abs(m) == abs(n)),
            )
            for n in items
        }
        assert {each[:3] for each in got} == expected
        assert all(each[3] == {str(m) for m in items if abs(m) == each[0]} for each in got)

    check()


def test_aggregates_of_all_items(pool: Instance) -> None:
    @settings(max_examples=20, deadline=None)
    @given(NUMBERS)
    def check(items: list[int]) -> None:
        (got,) = collected(
            pool,
            items,
            lambda s: s.aggregate(
                agg.count(),
                agg.sum(),
                agg.min(),
                agg.max(abs),
                agg.bottom(2),
                agg.to_list(),
                agg.to_dict(lambda n: n, str),
                agg.count_distinct(abs),
                agg.reduce(lambda a, b: a * b),
                agg.top(3, key=abs),
            ),
        )
        assert got[:2] == (len(items), sum(items))
        assert got[2:4] == (min(items, default=None), max(map(abs, items), default=None))
        assert got[4] == sorted(items)[:2]
        assert sorted(got[5]) == sorted(items)
        assert got[6] == {n: str(n) for n in items}
        assert got[7] == len(set(map(abs, items)))
        assert got[8] == (math.prod(items) if items else None)
        assert [abs(n) for n in got[9]] == sorted(map(abs, items), reverse=True)[:3]

    check()


def test_the_standard_deviation_of_decimals(pool: Instance) -> None:
    numbers = [Decimal("1.5"), Decimal(4), Decimal("-2.25")]
    assert collected(pool, numbers, lambda s: s.aggregate(agg.std())) == [
        pytest.approx(float(statistics.stdev(numbers)))
    ]


def test_a_dict_has_one_nan_as_a_key(pool: Instance) -> None:
    numbers = [float("nan") for _ in range(100)]
    to_dict: agg.Aggregate[float, dict[Any, int]] = agg.to_dict(lambda n: (n, "a"), lambda n: 1)
    [found] = collected(pool, numbers, lambda s: s.rebalance().aggregate(to_dict))
    assert list(found.values()) == [1]
    one, two = ({float("nan"): n} for n in range(2))  # as they come from two processes
    assert list(to_dict.combine(to_dict.combine({}, one), two).values()) == [1]


def test_mean_and_standard_deviation(pool: Instance) -> None:
    numbers = [1, 4, 4, 9, 2, 7]
    ((mean, std, of_all, first),) = collected(
        pool,
        numbers,
        lambda s: s.aggregate(agg.mean(), agg.std(), agg.std(ddof=0), agg.first(lambda n: "x")),
    )
    assert mean == statistics.mean(numbers)
    assert std == pytest.approx(statistics.stdev(numbers))
    assert of_all == pytest.approx(statistics.pstdev(numbers))
    assert first == "x"


def test_order_and_distinct(pool: Instance) -> None:
    @settings(max_examples=20, deadline=None)
    @given(NUMBERS, st.integers(0, 5))
    def check(items: list[int], n: int) -> None:
        assert collected(pool, items, lambda s: s.sort().map(str)) == [
            str(i) for i in sorted(items)
        ]
        assert collected(pool, items, lambda s: s.top(n)) == sorted(items, reverse=True)[:n]
        assert Counter(collected(pool, items, lambda s: s.distinct())) == Counter(set(items))
        limited = Counter(collected(pool, items, lambda s: s.limit(n)))
        assert limited <= Counter(items)
        assert limited.total() == min(n, len(items))

    check()


def test_a_long_sort_keeps_the_order_through_local_steps(pool: Instance) -> None:
    numbers = [(7 * n) % 10_007 for n in range(10_007)]
    got = collected(pool, numbers, lambda s: s.sort(reverse=True).filter(lambda n: n % 2).map(str))
    assert got == [str(n) for n in range(10_006, -1, -1) if n % 2]


def test_none_is_one_group_and_distinct_by_it_keeps_one() -> None:
    words = Pipeline().read_from(["a", "bb", "cc"])
    by_none = words.group_by(lambda w: None if len(w) == 2 else w)
    assert sorted(by_none.count().collect(), key=str) == [("a", 1), (None, 2)]
    assert len(words.distinct(lambda w: None).collect()) == 1
    assert len(words.rebalance(lambda w: None).collect()) == 3


def test_over_no_items_aggregate_emits_once_and_reduce_nothing() -> None:
    nothing = Pipeline().read_from(list[int]())
    assert nothing.aggregate(agg.count()).collect() == [0]
    assert nothing.count().collect() == [0]
    both: list[Any] = list(nothing.aggregate(agg.count(), agg.min()).collect())
    assert both == [(0, None)]
    assert nothing.reduce(lambda a, b: a + b).collect() == []
    assert nothing.aggregate(agg.min()).collect() == []


def test_limit_stops_an_endless_source_and_an_endless_flat_map() -> None:
    endless = Pipeline().read_from(itertools.count())
    assert len(endless.map(str).limit(5).collect()) == 5
    assert len(Pipeline().read_from([1]).flat_map(itertools.count).limit(5).collect()) == 5
    assert Pipeline().read_from(itertools.count()).limit(0).collect() == []


def test_limit_stops_endless_sources_behind_other_steps() -> None:
    pipe = Pipeline()
    one, other = pipe.read_from(itertools.count()), pipe.read_from(itertools.count())
    both = one.batch(2).union(other.sample(0.5), pipe.read_from([1]).flat_map(itertools.count))
    assert len(both.rebalance().limit(5).collect()) == 5


def test_limit_does_not_stop_a_source_that_others_read() -> None:
    numbers = Pipeline().read_from(range(20_000))
    some = numbers.limit(1).map(lambda n: 1)
    assert sorted(some.union(numbers.count()).collect()) == [1, 20_000]


def test_limit_closes_the_source() -> None:
    closed = []

    def numbers() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    Pipeline().read_from(numbers()).limit(1).collect()
    assert closed == [True]


def test_an_error_names_the_step_the_item_and_the_line() -> None:
    numbers = Pipeline().read_from([1, 0]).map(lambda n: n, name="same")
    divided = numbers.map(lambda n: 1 // n, name="divide")
    line = test_an_error_names_the_step_the_item_and_the_line.__code__.co_firstlineno + 2
    with pytest.raises(
        JobFailed, match=rf"step was added in test_steps.py line {line}\)"
    ) as failed:
        divided.collect()
    assert (failed.value.vertex, failed.value.item) == ("divide", 0)


def test_a_limit_after_a_sort_takes_the_first_in_order(pool: Instance) -> None:
    numbers = [(7 * n) % 101 for n in range(101)]
    assert collected(pool, numbers, lambda s: s.sort().limit(5).map(str)) == list("01234")


@pytest.mark.parametrize(("before", "after"), [(None, 4), (1, None), (4, 2), (3, 1)])
def test_the_order_is_kept_by_steps_of_any_parallelism(
    pool: Instance, before: int | None, after: int | None
) -> None:
    numbers = [(7 * n) % 5003 for n in range(5003)]

    def steps(stage: Stage[int]) -> Stage[str]:
        return stage.sort(parallelism=before).map(str, parallelism=after)

    assert collected(pool, numbers, steps) == [str(n) for n in range(5003)]
    first = collected(
        pool, numbers, lambda s: s.sort(parallelism=before).limit(3, parallelism=after)
    )
    assert first == [0, 1, 2]


def test_nan_is_neither_among_the_largest_nor_among_the_smallest() -> None:
    numbers = [math.nan, *range(1000), math.nan, -math.inf]
    stage = Pipeline().read_from(numbers)
    assert stage.top(2).collect() == [999, 998]
    assert stage.top(2, key=lambda n: -n).collect() == [-math.inf, 0]
    assert stage.aggregate(agg.bottom(2)).collect() == [[-math.inf, 0]]
    [few] = Pipeline().read_from([math.nan, 2, 1]).aggregate(agg.top(5)).collect()
    assert few[:2] == [2, 1]
    assert len(few) == 3
