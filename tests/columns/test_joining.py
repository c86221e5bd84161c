from __future__ import annotations

import contextlib
import struct
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.joining.spec import HOWS, JoinHow, JoinSpec
from pyrite.columns.kernels import Kernels
from tests.columns.arrays import KINDS, TYPES, arrays
from tests.columns.joined_rows import expected, joined, sides

KERNELS: tuple[Kernels, ...] = ("arrow", "polars")
KEYS = [kind for kind in TYPES if kind != pa.time64("ns")]
"""Python's times have no nanoseconds, so times that differ in Arrow are equal as items."""


@pytest.mark.parametrize("kind", KEYS, ids=str)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_both_kernels_join_as_single_items_do(kind: pa.DataType, data: st.DataObject) -> None:
    left, right = sides(data, [kind])
    spec = JoinSpec(("k0",), ("k0",), data.draw(st.sampled_from(HOWS)))
    rows = expected(spec, left, right)
    assert joined(spec, left, right, "arrow") == rows
    assert joined(spec, left, right, "polars") == rows


@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_join_that_spills_makes_the_same_rows(how: JoinHow, data: st.DataObject) -> None:
    left, right = sides(data, [data.draw(st.sampled_from(KEYS))])
    spec = JoinSpec(("k0",), ("k0",), how)
    kernels = data.draw(st.sampled_from(KERNELS))
    budget = data.draw(st.integers(0, 200))
    assert Counter(joined(spec, left, right, kernels, budget=budget)) == Counter(
        expected(spec, left, right)
    )


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_keys_of_several_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KEYS), min_size=2, max_size=3))
    left, right = sides(data, kinds)
    names = tuple(f"k{n}" for n in range(len(kinds)))
    spec = JoinSpec(names, names, data.draw(st.sampled_from(HOWS)))
    rows = expected(spec, left, right)
    assert joined(spec, left, right, "arrow") == rows
    assert joined(spec, left, right, "polars") == rows


NUMBERS = [
    *(pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal256(60, 30)),
    pa.dictionary(pa.int32(), pa.int64()),
]
MOMENTS = [kind for kind in KINDS if pa.types.is_timestamp(kind) and kind.tz]
TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
BYTES = [pa.binary(), pa.large_binary(), pa.binary(5)]
DURATIONS = [pa.duration("s"), pa.duration("ms"), pa.duration("us")]
LOCAL_TIMES = [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")]
TIMES_OF_DAY = [pa.time32("s"), pa.time32("ms"), pa.time64("us")]
DATES = [pa.date32(), pa.date64()]
FAMILIES = [NUMBERS, MOMENTS, TEXTS, BYTES, DURATIONS, LOCAL_TIMES, TIMES_OF_DAY, DATES]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_of_different_types_match_if_they_are_equal_in_python(data: st.DataObject) -> None:
    family = data.draw(st.sampled_from(FAMILIES))
    kinds = data.draw(st.sampled_from(family)), data.draw(st.sampled_from(family))
    left = data.draw(arrays(kinds[0], max_size=5))
    right = data.draw(arrays(kinds[1], max_size=5))
    # Values of the other side's, as far as this side can have them.
    left = pa.concat_arrays([left, *castable(right, kinds[0])])
    right = pa.concat_arrays([right, *castable(left, kinds[1])])
    lefts = [pa.record_batch({"a": left, "l": pa.array(range(len(left)))})]
    rights = [pa.record_batch({"b": right, "r": pa.array(range(len(right)))})]
    spec = JoinSpec(("a",), ("b",), data.draw(st.sampled_from(["left", "semi", "anti"])))
    rows = expected(spec, lefts, rights)
    assert joined(spec, lefts, rights, "arrow") == rows
    assert joined(spec, lefts, rights, "polars") == rows


def castable(array: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """The values of an array, one by one, that can be cast to a type."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    made = []
    for value in range(len(array)):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            made.append(array[value : value + 1].cast(kind))
    return made


@pytest.mark.parametrize("kernels", KERNELS)
def test_all_nans_are_one_key_and_both_zeros_too(kernels: Kernels) -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    left = [pa.record_batch({"k": [0.0, float("nan"), None], "l": [1, 2, 3]})]
    right = [pa.record_batch({"k": [-0.0, other_nan, None], "r": [1, 2, 3]})]
    rows = joined(JoinSpec(("k",), ("k",)), left, right, kernels)
    assert [row[1:] for row in rows] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_key_with_a_null_in_one_of_its_columns_matches_nothing(kernels: Kernels) -> None:
    side = [pa.record_batch({"a": [1, 1], "b": ["x", None]})]
    rows = joined(JoinSpec(("a", "b"), ("a", "b"), "semi"), side, side, kernels)
    assert rows == [(1, "x")]
