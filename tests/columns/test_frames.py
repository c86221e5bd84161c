from __future__ import annotations

from datetime import date, time

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import (
    Frame,
    as_batch,
    as_pandas,
    as_polars,
    as_table,
    batches_of,
    bytes_in,
    rows_in,
)
from tests.columns.arrays import TYPES, arrays

BATCH = pa.record_batch({"n": [1, 2, 3], "s": ["a", None, "c"]})
TABLE = pa.table(BATCH)
FRAMES = [BATCH, TABLE, pa.concat_tables([TABLE, TABLE]).slice(3), pl.DataFrame(BATCH)]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_every_frame_becomes_every_other(frame: Frame) -> None:
    rows = BATCH.to_pylist()
    assert as_batch(frame).to_pylist() == rows
    assert as_table(frame).to_pylist() == rows
    assert as_polars(frame).to_dicts() == rows
    assert as_pandas(frame)["n"].tolist() == [1, 2, 3]
    assert rows_in(frame) == 3
    assert bytes_in(frame) > 0


def test_pandas_gets_the_same_of_every_frame() -> None:
    batch = pa.record_batch({"d": [date(2020, 1, 1), None], "t": [time(1), None]})
    found = [as_pandas(frame) for frame in (batch, pl.DataFrame(batch))]
    assert [type(value) for value in found[0]["d"]] == [date, type(None)]
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=2)
@given(data=st.data())
def test_pyarrow_can_take_rows_of_every_batch(kind: pa.DataType, data: st.DataObject) -> None:
    array = data.draw(arrays(kind, min_size=1))
    schema = pa.schema([pa.field("k", kind, metadata={"a": "b"})], {"c": "d"})
    batch = as_batch(pa.RecordBatch.from_arrays([array], schema=schema))
    assert repr(batch["k"].to_pylist()) == repr(array.to_pylist())
    batch.take(pa.array([0]))
    assert batch.schema.metadata == {b"c": b"d"}
    assert batch.schema.field(0).metadata == {b"a": b"b"}


def test_views_become_large_strings() -> None:
    views = [pa.array([b"a"], pa.binary_view()), pa.array(["a"], pa.string_view())]
    table = pa.table(views, ["b", "s"])
    assert as_batch(table).schema.types == [pa.large_binary(), pa.large_string()]


def test_frames_are_cut_into_batches_of_limited_size() -> None:
    table = pa.table({"n": range(100_000)})
    batches = list(batches_of(table, 100_000))
    assert pa.Table.from_batches(batches) == table
    assert len(batches) == 8
    assert max(batch.nbytes for batch in batches) <= 100_000


def test_many_small_chunks_become_few_batches() -> None:
    table = pa.concat_tables([pa.table({"n": [number]}) for number in range(100)])
    (batch,) = batches_of(table)
    assert batch["n"].to_pylist() == list(range(100))


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_an_empty_frame_gives_one_empty_batch_with_its_schema(frame: Frame) -> None:
    (batch,) = batches_of(frame[:0])
    assert batch.num_rows == 0
    assert batch.schema.names == ["n", "s"]
    (batch,) = batches_of(pa.Table.from_batches([], BATCH.schema))
    assert batch.schema == BATCH.schema
