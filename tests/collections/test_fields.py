"""Two keys have the same field if and only if they are equal."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.collections.stored.fields import field_of
from pyrite.collections.stored.values import CannotStore
from pyrite.keys import one_nan
from tests.collections.points import Color, Pair, Point

numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.fractions(max_denominator=4),
    st.decimals(-3, 3, places=1),
    st.complex_numbers(max_magnitude=2),
    st.sampled_from([Color.RED, 2**61 - 1, -(2**61), np.float64(0.5), np.int32(1)]),
)
leaves = st.one_of(
    numbers,
    st.text(max_size=2),
    st.binary(max_size=2),
    st.none(),
    st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.sampled_from([uuid.UUID(int=1), PurePosixPath("a"), ..., "nan", b"nan", "n1", "t"]),
)
composites = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(tuple),
        st.frozensets(parts, max_size=3),
        st.builds(Point, parts, parts),
        st.builds(Pair, parts, parts),
    ),
    max_leaves=4,
)


@given(a=composites, b=composites)
def test_fields_are_the_same_for_equal_keys_only(a: Any, b: Any) -> None:
    assert (field_of(a) == field_of(b)) == (one_nan(a) in {one_nan(b)})


@given(a=numbers, b=numbers)
def test_fields_of_numbers_are_the_same_for_equal_numbers_only(a: Any, b: Any) -> None:
    assert (field_of(a) == field_of(b)) == (one_nan(a) in {one_nan(b)})


@given(number=st.fractions())
def test_all_types_of_a_number_have_one_field(number: Fraction) -> None:
    fields = {field_of(number)}
    if Fraction(float(number)) == number:
        fields |= {field_of(float(number)), field_of(Decimal(float(number)))}
        fields |= {field_of(np.float64(number)), field_of(np.longdouble(float(number)))}
    if number.denominator == 1:
        fields |= {field_of(int(number)), field_of(complex(number) if not fields else number)}
    assert len(fields) == 1


def test_a_number_may_have_more_digits_than_python_writes() -> None:
    assert field_of(10**5000) != field_of(10**5000 + 1)


def test_moments_of_pandas_differ_by_their_nanoseconds() -> None:
    moment = datetime.datetime(2026, 1, 1)
    assert field_of(pd.Timestamp(moment)) == field_of(moment)
    assert field_of(pd.Timestamp(moment) + pd.Timedelta(1, "ns")) != field_of(moment)
    assert field_of(pd.Timedelta(1, "ns")) != field_of(pd.Timedelta(2, "ns"))
    assert field_of(pd.NaT) not in (field_of(float("nan")), field_of("nan"))


class OwnEquality:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "key", [object(), OwnEquality(), (1, object()), np.datetime64("2026"), Decimal("1e99999")]
)
def test_a_key_whose_equals_are_not_known_is_refused(key: Any) -> None:
    with pytest.raises(CannotStore, match="cannot be a key of a stored map"):
        field_of(key)
