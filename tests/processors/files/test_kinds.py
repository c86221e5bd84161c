"""Kinds of values: found the same however the values are divided, and held by the column type that
they stand for."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.processors.files.parquet.kinds import (
    CannotStore,
    CannotUnite,
    arrow_schema,
    arrow_type,
    fields_of,
    kind_of,
    unite,
)

LONGEST = dt.timedelta(days=106_751_991)  # Parquet has 64 bits for microseconds

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.times(),
    st.timedeltas(-LONGEST, LONGEST),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=10**6, min_value=0),
)
names = st.sampled_from("abc")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
numbers = st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False)
nested = st.fixed_dictionaries({"n": numbers}, optional={"m": st.text(max_size=2)})
rows_that_nearly_fit = st.fixed_dictionaries(
    {},
    optional={
        "x": numbers,
        "y": st.none() | st.lists(numbers, max_size=2),
        "z": st.none() | nested,
        "t": st.none() | st.datetimes(),
        "d": st.decimals(-100, 100, places=2) | st.decimals(-9, 9, places=4),
        "odd": st.integers(2**53 - 1, 2**53 + 1) | st.just(0.5),
    },
)


def kind_or_error(make: Any) -> Any:
    try:
        return make()
    except (CannotUnite, CannotStore) as error:
        return type(error).__mro__[-2]


@given(st.lists(values, max_size=6), st.integers(0, 6))
def test_the_kind_of_values_does_not_depend_on_how_they_are_divided(
    all_values: list[Any], cut: int
) -> None:
    one, two = all_values[:cut], all_values[cut:]
    whole = kind_or_error(lambda: kind_of(all_values))
    assert kind_or_error(lambda: unite(kind_of(one), kind_of(two))) == whole
    assert kind_or_error(lambda: unite(kind_of(two), kind_of(one))) == whole


@given(st.lists(st.dictionaries(names, values, max_size=3), max_size=5), st.integers(0, 5))
def test_nor_do_the_fields_of_rows(rows: list[dict[str, Any]], cut: int) -> None:
    whole = kind_or_error(lambda: fields_of(rows))
    assert kind_or_error(lambda: unite(fields_of(rows[:cut]), fields_of(rows[cut:]))) == whole


@given(st.lists(values, min_size=1, max_size=4))
def test_a_column_of_the_kind_holds_the_values(some: list[Any]) -> None:
    kind = kind_or_error(lambda: kind_of(some))
    if isinstance(kind, type):
        return
    back = pa.array(some, type=arrow_type(kind)).to_pylist()
    assert kind_of(back) == kind_of(some) or kind_of(back + some) == kind


@pytest.mark.parametrize(
    ("some", "type"),
    [
        ([1, None], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([np.int32(1), 2], pa.int64()),
        ([np.float32(1), 2], pa.float64()),
        ([np.bool_(True), False], pa.bool_()),
        ([np.array([1, 2]), [3]], pa.list_(pa.int64())),
        ([None], pa.null()),
        ([[], [1]], pa.list_(pa.int64())),
        ([decimal.Decimal("1.5"), decimal.Decimal("100")], pa.decimal128(4, 1)),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        ([{"b": 1, "a": None}], pa.struct([("b", pa.int64()), ("a", pa.null())])),
        ([{"b": 1}, {"a": 2}], pa.struct([("a", pa.int64()), ("b", pa.int64())])),
    ],
)
def test_types(some: list[Any], type: pa.DataType) -> None:
    assert arrow_type(kind_of(some)) == type


@pytest.mark.parametrize(
    "some",
    [
        [1, "x"],
        [True, 1],
        ["a", b"a"],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
        [1, decimal.Decimal(1)],
        [[1], 1],
        [{"a": 1}, {"a": "x"}],
        [decimal.Decimal("1e50"), decimal.Decimal("1e-50")],
        [{}],
        [object()],
        [{1: 2}],
        [decimal.Decimal("nan")],
    ],
)
def test_values_that_no_column_can_hold(some: list[Any]) -> None:
    with pytest.raises((CannotUnite, CannotStore)):
        kind_of(some)


def test_columns_have_the_order_of_the_fields_if_all_rows_agree_on_it() -> None:
    assert arrow_schema(fields_of([{"b": 1, "a": 2}, {}, {"b": 3, "a": 4}])).names == ["b", "a"]
    assert arrow_schema(fields_of([{"b": 1, "a": 2}, {"a": 3, "b": 4}])).names == ["a", "b"]
