from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.hashing import partitions_of
from pyrite.columns.schemas import InvalidBatch
from pyrite.partitioning import partition_id
from tests.columns.arrays import TYPES, arrays


def expected(batch: pa.RecordBatch, columns: list[str], count: int) -> list[int]:
    """The partitions of the keys as Python objects."""
    values = [batch.column(name).to_pylist() for name in columns]
    keys: Any = values[0] if len(columns) == 1 else zip(*values)
    return [partition_id(key, count) for key in keys]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=12)
@given(data=st.data())
def test_a_row_is_in_the_partition_of_its_key(kind: pa.DataType, data: st.DataObject) -> None:
    batch = pa.record_batch({"k": data.draw(arrays(kind))})
    assert partitions_of(batch, ["k"], 997).tolist() == expected(batch, ["k"], 997)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=6)
@given(data=st.data())
def test_the_key_of_several_columns_is_their_tuple(kind: pa.DataType, data: st.DataObject) -> None:
    array = data.draw(arrays(kind, min_size=1))
    other = data.draw(arrays(data.draw(st.sampled_from(TYPES)), min_size=len(array)))
    batch = pa.record_batch({"a": array, "b": other.slice(0, len(array))})
    for columns in (["a", "b"], ["b", "a"], ["a", "a", "b"]):
        assert partitions_of(batch, columns, 997).tolist() == expected(batch, columns, 997)


@given(st.lists(st.integers(0, 5) | st.integers(250, 270) | st.just(3_000), max_size=8))
def test_strings_of_any_length_are_hashed(lengths: list[int]) -> None:
    batch = pa.record_batch({"k": pa.array(["é" * length for length in lengths], pa.string())})
    assert partitions_of(batch, ["k"], 997).tolist() == expected(batch, ["k"], 997)


def test_many_rows_are_hashed_in_parts() -> None:
    numbers = np.arange(-40_000, 40_000)
    batch = pa.record_batch({"n": numbers, "s": [f"key {n}" for n in numbers], "f": numbers / 8})
    for columns in (["n"], ["s"], ["f"], ["n", "s"]):
        assert partitions_of(batch, columns).tolist() == expected(batch, columns, 271)


def test_equal_numbers_of_different_types_are_in_one_partition() -> None:
    kinds = [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(9, 2), pa.bool_()]
    found = {
        int(partitions_of(pa.record_batch({"k": pa.array([1], pa.int8()).cast(kind)}), ["k"])[0])
        for kind in kinds
    }
    assert found == {partition_id(1)}


def test_null_keys_are_in_the_partition_of_none() -> None:
    batch = pa.record_batch({"a": pa.array([None, 1]), "b": pa.array([None, None], pa.string())})
    assert partitions_of(batch, ["a"]).tolist() == [partition_id(None), partition_id(1)]
    assert partitions_of(batch, ["a", "b"])[0] == partition_id((None, None))


def test_a_column_that_does_not_exist_is_named_with_the_one_that_is_meant() -> None:
    batch = pa.record_batch({"price": [1], "name": ["a"]})
    with pytest.raises(InvalidBatch, match="no column 'prise'; did you mean 'price'"):
        partitions_of(batch, ["prise"])


def test_the_partitions_are_32_bit_integers() -> None:
    assert partitions_of(pa.record_batch({"k": [1, 2]}), ["k"]).dtype == np.int32
    assert partitions_of(pa.record_batch({"k": pa.array([], pa.int8())}), ["k"]).tolist() == []
