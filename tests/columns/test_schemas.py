from __future__ import annotations

import pyarrow as pa
import pytest

from pyrite.columns.schemas import InvalidBatch, checked, column_of

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


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.null()),
        *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string())),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "expected", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_other_encodings_of_the_same_values_fit(kind: pa.DataType, expected: pa.DataType) -> None:
    values = [None, None] if kind == pa.null() else ["a", None]
    batch = pa.record_batch({"k": pa.array(values).cast(kind)})
    again = checked(batch, pa.schema([("k", expected)]), "vertex 'v'")
    assert again.schema.types == [expected]
    assert again["k"].to_pylist() == values
