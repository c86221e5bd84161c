"""Ranges over a key."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrite.processors.sql.ranges import KeyRange, ranges_between

KEYS = st.none() | st.integers(-20, 20)


def holds(range: KeyRange, key: Any) -> bool:
    """As a database would say it."""
    if range.has_all or key is None:
        return range.has_all or range.is_null
    return (
        not range.is_null
        and (range.low is None or key >= range.low)
        and (range.high is None or key < range.high)
    )


@given(st.lists(st.integers(-20, 20)).map(sorted), KEYS)
def test_each_key_is_in_exactly_one_range(boundaries: list[int], key: int | None) -> None:
    assert sum(holds(range, key) for range in ranges_between(boundaries)) == 1


def test_without_boundaries_one_range_has_all() -> None:
    assert ranges_between([]) == (KeyRange(),)


def test_a_key_that_many_rows_have_makes_one_range() -> None:
    assert len(ranges_between([3, 3, 3, 9])) == len(ranges_between([3, 9]))
