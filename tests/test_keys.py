"""NaN is one key: alone, inside other keys, in groups, in distinct counts and in named maps."""

from __future__ import annotations

import gc
import math
import weakref
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, Instance, between
from pyrite import processors as p
from pyrite.keys import one_nan
from pyrite.partitioning import partition_id

Pair = namedtuple("Pair", "a b")


def nan() -> float:
    return float("nan")


@dataclass(frozen=True)
class Place:
    name: str
    height: float


@dataclass(frozen=True, slots=True)
class Point:
    place: Place
    depth: float


KINDS_OF_NAN: list[Any] = [
    nan,
    lambda: numpy.float64("nan"),
    lambda: numpy.float32("nan"),
    lambda: Decimal("NaN"),
    lambda: complex(nan(), 0),
    lambda: ("a", nan()),
    lambda: ("a", (1, nan())),
    lambda: Pair("a", nan()),
    lambda: Place("a", nan()),
    lambda: Point(Place("a", nan()), 1.0),
    lambda: (1, Point(Place("a", 1.0), nan())),
    lambda: frozenset([1, nan()]),
    lambda: frozenset([1, nan(), nan()]),
    lambda: pandas.NaT,
]


@pytest.mark.parametrize("make", KINDS_OF_NAN, ids=lambda make: repr(make()))
def test_two_nans_of_a_kind_are_one_key_with_one_partition(make: Any) -> None:
    assert len({one_nan(make()), one_nan(make())}) == 1
    assert partition_id(make()) == partition_id(make())
    assert type(one_nan(("x", make()))) is tuple


def test_a_dataclass_with_nan_is_one_key_also_if_it_has_the_nan_of_another_key() -> None:
    first = one_nan(Place("a", nan()))
    assert len({first, one_nan(Place("a", first.height))}) == 1


def test_a_key_with_nan_is_not_kept_when_nothing_refers_to_it() -> None:
    key = weakref.ref(one_nan(Place("b", nan())))
    gc.collect()
    assert key() is None


def test_a_dataclass_that_is_compared_by_identity_stays_the_object_that_it_is() -> None:
    @dataclass(eq=False)
    class Sensor:
        height: float

    sensor = Sensor(nan())
    assert one_nan(sensor) is sensor


def test_numpys_nat_is_one_key() -> None:
    for kind in (numpy.datetime64, numpy.timedelta64):
        assert len({one_nan(kind("NaT", "s")) for _ in range(3)}) == 1
        assert type(one_nan(kind("NaT", "s"))) is kind


@given(st.recursive(st.floats(allow_nan=False) | st.text() | st.integers(), st.tuples))
def test_a_key_without_nan_stays_the_object_that_it_is(key: Any) -> None:
    assert one_nan(key) is key


FOLDS: dict[str, Any] = {
    "accumulate": p.group_and_accumulate(lambda x: x, 0, lambda n, x: n + 1),
    "accumulate, not inlined": p.group_and_accumulate(lambda x: x, 0, lambda n, x: n - 1 + 2),
    "collect": p.group_and_collect(
        lambda x: x, list, list.append, finish=lambda key, items: (key, len(items))
    ),
}


@pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS.keys())
@pytest.mark.parametrize("source", ["items", "lists"])
def test_nans_are_one_group(pyr: Instance, fold: Any, source: str) -> None:
    dag = DAG()
    items = [[nan(), 1.0], [nan(), ("a", nan())], [("a", nan()), 1.0, nan()]]
    read = dag.vertex("read", p.read_items(items))
    flat = dag.vertex("flat", p.flat_map((lambda x: x) if source == "lists" else iter))
    group = dag.vertex("group", fold)
    dag.edge(between(read, flat)).edge(between(flat, group).partitioned(key=lambda x: x))
    dag.edge(between(group, dag.vertex("sink", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(10)
    counts = {repr(key): count for key, count in pyr.list("out")}
    assert len(pyr.list("out")) == 3
    assert counts == {"nan": 3, "1.0": 2, "('a', nan)": 2}


def test_nans_are_counted_as_one_distinct_key(pyr: Instance) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([nan(), nan(), 1.0, "a", nan()]))
    dag.edge(between(read, count := dag.vertex("count", p.count_distinct(lambda x: x))))
    dag.edge(between(count, dag.vertex("sink", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(10)
    assert list(pyr.list("out")) == [3]


def test_a_named_map_has_one_entry_for_nan(pyr: Instance) -> None:
    pyr.map("m").update({nan(): 1, "x": 2})
    pyr.map("m")[nan()] = 3
    assert len(pyr.map("m")) == 2
    assert pyr.map("m")[nan()] == 3
    assert nan() in pyr.map("m")
    del pyr.map("m")[nan()]
    assert not any(isinstance(key, float) and math.isnan(key) for key in pyr.map("m"))
