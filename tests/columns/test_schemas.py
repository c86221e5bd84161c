from __future__ import annotations

import pyarrow as pa
import pytest

from pyrite.columns.schemas import InvalidBatch, checked, column_of, unified

BATCH = pa.record_batch({"id": [1], "price": [2.5]})


def test_a_batch_with_the_columns_in_another_order_is_put_in_order() -> None:
    other = BATCH.select(["price", "id"])
    assert checked(other, BATCH.schema, "vertex 'v'") == BATCH
    assert checked(BATCH, BATCH.schema, "vertex 'v'") is BATCH


def test_a_missing_column_is_named_with_those_that_exist() -> None:
    with pytest.raises(InvalidBatch) as error:
        column_of(BATCH, "pricee", "vertex 'v'")
    assert str(error.value) == (
        "vertex 'v': there is no column 'pricee'; did you mean 'price'? The columns "
        "are 'id', 'price'"
    )


def test_a_column_that_is_there_twice_is_refused() -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["k", "k"])
    with pytest.raises(InvalidBatch, match="several columns 'k'"):
        column_of(batch, "k")


def test_types_that_differ_are_named() -> None:
    other = pa.record_batch({"id": ["1"], "price": [2.5]})
    with pytest.raises(InvalidBatch) as error:
        checked(other, BATCH.schema, "vertex 'v'")
    assert str(error.value) == (
        "vertex 'v': the column 'id' is string in one batch and int64 in another; cast it to one "
        "type before, for example with map_batches"
    )


def test_a_column_that_the_others_do_not_have_is_named() -> None:
    other = pa.record_batch({"id": [1], "price": [2.5], "tax": [1]})
    with pytest.raises(InvalidBatch, match="vertex 'v': a batch has the column 'tax'"):
        checked(other, BATCH.schema, "vertex 'v'")


def test_schemas_are_unified_over_columns_of_nulls() -> None:
    nulls = pa.schema([("price", pa.null()), ("id", pa.int64())])
    assert unified([nulls, BATCH.schema, nulls], "v").field("price").type == pa.float64()
    with pytest.raises(InvalidBatch, match="the column 'id' is int32 in one batch and int64"):
        unified([BATCH.schema, pa.schema([("price", pa.float64()), ("id", pa.int32())])], "v")
