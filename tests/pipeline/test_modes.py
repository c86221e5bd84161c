"""The basic steps give the same in every mode: as light jobs, on members, on Spark and durably."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pyrite import Pipeline, agg
from pyrite import processors as p
from tests.pipeline.modes import Mode, mode

__all__ = ["mode"]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def test_forks_splits_and_unions(mode: Mode) -> None:
    pipe = Pipeline()
    odd, even = pipe.read_from(range(100)).split(lambda n: n % 2)
    odd.union(even.map(lambda n: -n), even.filter(lambda n: n > 90)).write_to(p.write_list("all"))
    even.flat_map(lambda n: [n] * (n == 4)).write_to(p.write_list("fours"))
    every, fours = mode.listed(pipe, "all", "fours")
    assert Counter(every) == Counter([*range(1, 100, 2), *range(0, -100, -2), 92, 94, 96, 98])
    assert fours == [4]


def test_joins_and_co_groups(mode: Mode) -> None:
    pipe = Pipeline()
    some = pipe.read_from([(n % 7 or None, n) for n in range(50)])
    few = pipe.read_from([(n, str(n)) for n in range(3, 9)])
    for how in ("inner", "full"):
        joined = some.join(few, left=lambda t: t[0], right=lambda t: t[0], how=how)
        joined.write_to(p.write_list(how))
    small = some.join(few, left=lambda t: t[0], right=lambda t: t[0], how="anti", broadcast=True)
    small.write_to(p.write_list("anti"))
    some.co_group(few, left=lambda t: t[0], right=lambda t: t[0]).map(
        lambda t: (t[0], len(t[1]), len(t[2]))
    ).write_to(p.write_list("groups"))
    inner, full, anti, groups = mode.listed(pipe, "inner", "full", "anti", "groups")
    matches = [((n % 7, n), (n % 7, str(n % 7))) for n in range(50) if n % 7 > 2]
    alone = [(n % 7 or None, n) for n in range(50) if n % 7 < 3]
    assert Counter(inner) == Counter(matches)
    assert Counter(full) == Counter(
        [*matches, *((t, None) for t in alone), (None, (7, "7")), (None, (8, "8"))]
    )
    assert Counter(anti) == Counter(alone)
    sizes = Counter(n % 7 or None for n in range(50))
    assert set(groups) == {
        (key, sizes[key], int(key in range(3, 9))) for key in [None, *range(1, 9)]
    }


def test_groups_and_aggregates(mode: Mode) -> None:
    pipe = Pipeline()
    numbers = pipe.read_from(range(1000))
    by_rest = numbers.group_by(lambda n: n % 3 or None)
    by_rest.aggregate(agg.count(), agg.sum(), agg.max()).write_to(p.write_list("groups"))
    numbers.map(lambda n: n % 10).distinct().count().write_to(p.write_list("distinct"))
    groups, distinct = mode.listed(pipe, "groups", "distinct")
    expected = [(rest or None, range(rest, 1000, 3)) for rest in range(3)]
    assert set(groups) == {(rest, len(of), sum(of), max(of)) for rest, of in expected}
    assert distinct == [10]


def test_order_tops_and_limits(mode: Mode) -> None:
    pipe = Pipeline()
    numbers = pipe.read_from(range(500)).rebalance(lambda n: n)
    numbers.sort(key=lambda n: -n).map(str).write_to(p.write_list("sorted"))
    numbers.top(3, key=lambda n: n % 100).write_to(p.write_list("top"))
    numbers.limit(7).write_to(p.write_list("some"))
    in_order, top, some = mode.listed(pipe, "sorted", "top", "some")
    assert in_order == [str(n) for n in reversed(range(500))]
    assert [n % 100 for n in top] == [99, 99, 99]
    assert len(set(some)) == 7


def test_files_and_lists(mode: Mode, tmp_path: Path) -> None:
    pipe = Pipeline()
    words = pipe.read_from(["to be", "or not", "to be"]).flat_map(str.split)
    words.write_to(p.write_files(str(tmp_path / "words")))
    words.group_by(str.upper).count().map(lambda t: t[1]).write_to(p.write_list("counts"))
    (counts,) = mode.listed(pipe, "counts")
    written = Pipeline().read_from(p.read_files(f"{tmp_path}/words/*")).collect()
    assert Counter(written) == Counter(["to", "be", "or", "not", "to", "be"])
    assert sorted(counts) == [1, 1, 2, 2]
