from __future__ import annotations

import datetime
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.hashing.partitions import partitions_of
from pyrite.columns.schemas import InvalidBatch
from pyrite.partitioning import partition_id
from tests.columns.arrays import TYPES, arrays


def expected(batch: pa.RecordBatch, columns: list[str], count: int) -> list[int]:
    """The partitions of the keys as Python objects."""
    values = [batch.column(name).to_pylist() for name in columns]
    keys: Any = values[0] if len(columns) == 1 else zip(*values)
    return [partition_id(key, count) for key in keys]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=7)
@given(data=st.data())
def test_a_row_is_in_the_partition_of_its_key(kind: pa.DataType, data: st.DataObject) -> None:
    batch = pa.record_batch({"k": data.draw(arrays(kind))})
    assert partitions_of(batch, ["k"], 997).tolist() == expected(batch, ["k"], 997)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=4)
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


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_that_occur_twice_are_in_the_partition_of_their_key(zone: str, unit: str) -> None:
    """A clock is set back in these hours, every 10 minutes of three weeks in 2021."""
    starts = [datetime.datetime(2021, *day, tzinfo=UTC) for day in ((3, 25), (4, 1), (10, 28))]
    seconds = [int(start.timestamp()) + 600 * n for start in starts for n in range(144 * 7)]
    moments = pa.array(seconds, pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    batch = pa.record_batch({"k": moments, "n": seconds})
    for columns in (["k"], ["k", "n"]):
        assert partitions_of(batch, columns, 997).tolist() == expected(batch, columns, 997)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.duration("s")),
        *(pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("s", "Europe/Berlin")),
    ],
    ids=str,
)
def test_moments_that_python_cannot_represent_have_a_partition(kind: pa.DataType) -> None:
    least = np.iinfo(f"i{kind.bit_width // 8}").min
    numbers = pa.array([least, None, least, 0, -1 - least], pa.int64())
    batch = pa.record_batch({"k": numbers.cast(f"int{kind.bit_width}").cast(kind)})
    found = partitions_of(batch, ["k"], 1 << 20).tolist()
    zero = batch["k"][3].as_py()
    assert found[0] == found[2] != found[4]
    assert [found[1], found[3]] == [partition_id(None, 1 << 20), partition_id(zero, 1 << 20)]


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
