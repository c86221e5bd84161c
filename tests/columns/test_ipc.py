from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.packing import ipc
from pyrite.columns.packing.pickling import dumps
from tests.columns.arrays import TYPES, arrays


def large() -> pa.RecordBatch:
    numbers = np.arange(100_000)
    return pa.record_batch({"n": numbers, "s": numbers.astype(str), "f": numbers / 2})


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=2)
@given(data=st.data())
def test_batches_of_every_type_survive(kind: pa.DataType, data: st.DataObject) -> None:
    batches = [pa.record_batch({"k": data.draw(arrays(kind))}) for _ in range(2)]
    again = ipc.unpacked(ipc.packed(batches))
    assert [each.schema for each in again] == [each.schema for each in batches]
    assert [repr(each["k"].to_pylist()) for each in again] == [
        repr(each["k"].to_pylist()) for each in batches
    ]


def test_a_slice_is_packed_without_the_rest_of_its_batch() -> None:
    assert len(ipc.packed([large().slice(50_000, 10)])) < 1_000


def test_a_slice_of_nested_columns_is_packed_without_the_rest() -> None:
    numbers = pa.array(np.arange(100_000))
    lists = pa.ListArray.from_arrays(pa.array(range(0, 100_001, 2)), numbers)
    structs = pa.StructArray.from_arrays([lists, lists], ["a", "b"])
    batch = pa.record_batch({"l": lists, "s": structs}).slice(25_000, 10)
    data = ipc.packed([batch])
    assert len(data) < 2_000
    assert ipc.unpacked(data) == [batch]


def test_a_slice_is_packed_with_the_values_of_a_dictionary_that_it_has() -> None:
    words = pa.array([f"word {number}" for number in range(10_000)]).dictionary_encode()
    batch = pa.record_batch({"k": words}).slice(5_000, 10)
    data = ipc.packed([batch])
    assert len(data) < 1_000
    assert ipc.unpacked(data)[0].to_pylist() == batch.to_pylist()


def loose_arrays() -> dict[str, pa.Array]:
    """Arrays of 1000 rows of which Arrow does not cut all inner arrays."""
    texts = [f"a text of the row {number}" for number in range(1000)]
    plain, starts = pa.array(texts), pa.array(range(1001), pa.int32())
    words, views = plain.dictionary_encode(), pa.array(texts, pa.string_view())
    lists = pa.ListArray.from_arrays(starts, words)
    return {
        "views": views,
        "dictionaries of views": pa.DictionaryArray.from_arrays(starts.slice(0, 1000), views),
        "binary views": views.cast(pa.binary_view()),
        "structs": pa.StructArray.from_arrays([words, views], ["a", "b"]),
        "lists": lists,
        "lists of lists": pa.LargeListArray.from_arrays(starts.cast(pa.int64()), lists),
        "lists of one size": pa.FixedSizeListArray.from_arrays(words, 1),
        "maps": pa.MapArray.from_arrays(starts, plain, words),
        "list views": pa.array([[text] for text in texts], pa.list_view(pa.string())),
        "list views of views": pa.array([[t] for t in texts], pa.large_list_view(views.type)),
        "unions": pa.UnionArray.from_dense(
            pa.array([0] * 1000, pa.int8()), pa.array(range(1000), pa.int32()), [plain]
        ),
    }


@pytest.mark.parametrize("kind", loose_arrays())
@pytest.mark.parametrize("start", [0, 500])
def test_a_slice_is_packed_without_the_rest_whatever_its_type(kind: str, start: int) -> None:
    part = pa.record_batch({"k": loose_arrays()[kind]}).slice(start, 10)
    data = ipc.packed([part])
    assert len(data) < 4_000
    (again,) = ipc.unpacked(data)
    assert again.schema == part.schema
    assert again.to_pylist() == part.to_pylist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct({"a": pa.dictionary(pa.int8(), pa.string())}),
        pa.list_(pa.string_view()),
        pa.list_(pa.string_view(), 1),
        pa.large_list(pa.list_view(pa.string())),
        pa.list_view(pa.dictionary(pa.int8(), pa.string())),
        pa.map_(pa.string(), pa.struct({"a": pa.string_view()})),
    ],
    ids=str,
)
def test_nulls_at_every_depth_are_packed(kind: pa.DataType) -> None:
    values: list[Any] = [None, *_values(kind), None, *_values(kind)]
    part = pa.record_batch({"k": pa.array(values, kind)}).slice(1)
    assert ipc.unpacked(ipc.packed([part]))[0].to_pylist() == part.to_pylist()


def _values(kind: pa.DataType) -> list[Any]:
    """Values of a type, also those with nulls inside."""
    if pa.types.is_struct(kind):
        return [{"a": value} for value in (None, "x", "a text that is not in the view")]
    if pa.types.is_map(kind):
        return [[], [("k", value) for value in (None, *_values(kind.item_type))]]
    if pa.types.is_fixed_size_list(kind):
        return [[None], ["x"]]
    if pa.types.is_nested(kind):
        return [[], [None, *_values(kind.value_type)]]
    return ["y", "another text that is not in the view"]


def test_a_packet_may_start_anywhere_in_memory() -> None:
    packet = memoryview(b"!" + ipc.packed([large()]))[1:]
    (again,) = ipc.unpacked(packet)
    assert again == large()
    assert all(buffer.address % 8 == 0 for buffer in again["n"].buffers() if buffer)


def test_batches_of_different_schemas_go_in_one_packet() -> None:
    batches = [
        pa.record_batch({"a": [1]}),
        pa.record_batch({"b": ["x"]}),
        pa.record_batch({"b": ["y"]}, metadata={"unit": "m"}),
        pa.record_batch({"a": [2]}),
    ]
    again = ipc.unpacked(ipc.packed(batches))
    assert again == batches
    assert again[2].schema.metadata == {b"unit": b"m"}


def test_batches_with_different_dictionaries_survive() -> None:
    arrays = [pa.array(words).dictionary_encode() for words in (["a", "b"], ["c"], ["b", "a"])]
    batches = [pa.record_batch({"k": array}) for array in arrays]
    assert ipc.unpacked(ipc.packed(batches)) == batches


def test_batches_without_rows_or_without_columns_survive() -> None:
    batches = [large().slice(0, 0), large().slice(0, 7).select([])]
    again = ipc.unpacked(ipc.packed(batches))
    assert [(each.num_rows, each.schema) for each in again] == [
        (each.num_rows, each.schema) for each in batches
    ]
    assert ipc.unpacked(ipc.packed([])) == []


def test_batches_are_unpacked_without_a_copy() -> None:
    packet = ipc.packed([large()])
    before = pa.total_allocated_bytes()
    (again,) = ipc.unpacked(packet)
    assert pa.total_allocated_bytes() - before < 10_000
    assert again == large()


def test_a_packet_of_batches_is_told_from_a_pickle() -> None:
    assert ipc.is_packed(ipc.packed([large()]))
    assert not ipc.is_packed(pickle.dumps([large()], 5))


class _Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


def test_batches_inside_what_is_pickled_go_as_ipc() -> None:
    part = large().slice(50_000, 10)
    data = dumps([{"part": part}, (1, _Holder(part)), pa.Table.from_batches([part])])
    assert len(data) < 3_000
    first, (_, second), table = pickle.loads(data)
    assert first["part"] == second.held == part
    assert table.to_batches() == [part]


def test_batches_beside_functions_go_as_ipc() -> None:
    part = large().slice(50_000, 10)
    data = dumps((part, lambda batch: batch.num_rows))
    assert len(data) < 3_000
    again, count = pickle.loads(data)
    assert (again, count(again)) == (part, 10)


def test_an_empty_table_survives() -> None:
    table = pa.table({"n": pa.array([], pa.int64())})
    assert pickle.loads(dumps(table)) == table
    none = pa.Table.from_batches([], table.schema)
    assert pickle.loads(dumps(none)) == none
