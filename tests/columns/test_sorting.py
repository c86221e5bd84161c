from __future__ import annotations

import functools
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.kernels import Kernels
from pyrite.columns.schemas import InvalidBatch
from pyrite.columns.sorting.sorting import Sorting, SortSpec, sort_spec
from pyrite.errors import InvalidDAG
from tests.columns.arrays import TYPES, arrays

KERNELS: tuple[Kernels, ...] = ("arrow", "polars")


def has_order(kind: pa.DataType) -> bool:
    t = pa.types
    unordered = t.is_nested(kind) or t.is_interval(kind) or kind == pa.uuid()
    return not unordered and kind != pa.time64("ns")  # Python's times have no nanoseconds


ORDERED = [kind for kind in TYPES if has_order(kind)]


def expected(spec: SortSpec, batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """The rows, sorted in Python."""

    def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
        for name, descending in zip(spec.by, spec.descending):
            a, b = one[name], other[name]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return 1 if a is None else -1
                continue
            has_nan = a != a or b != b
            difference = int(a != a) - int(b != b) if has_nan else int(a > b) - int(a < b)
            if difference:
                return -difference if descending else difference
        return 0

    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["row"], repr(row)) for row in sorted(rows, key=functools.cmp_to_key(compare))]


def rows_of(sorting: Sorting) -> list[tuple[Any, ...]]:
    try:
        frames = [as_batch(frame) for frame in sorting.results()]
        return [(row["row"], repr(row)) for frame in frames for row in frame.to_pylist()]
    finally:
        sorting.close()


def in_order(
    spec: SortSpec, batches: list[pa.RecordBatch], kernels: Kernels, *, budget: int | None = None
) -> list[tuple[Any, ...]]:
    sorting = Sorting(spec, kernels=kernels, budget=budget, vertex="sort")
    for batch in batches:
        sorting.add(batch)
    return rows_of(sorting)


def tables(data: st.DataObject, kinds: list[pa.DataType]) -> list[pa.RecordBatch]:
    """Batches with the columns k0, k1, ... of these types, and `row`, the number of the row."""
    pools = [data.draw(arrays(kind, min_size=1, max_size=6)) for kind in kinds]
    made, number = [], 0
    for size in data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=4)):
        columns: dict[str, Any] = {"row": pa.array(range(number, number + size), pa.int64())}
        for n, pool in enumerate(pools):
            place = st.integers(0, len(pool) - 1)
            chosen = data.draw(st.lists(place, min_size=size, max_size=size))
            plain = as_batch(pa.record_batch([pool], ["k"])).column(0)
            columns[f"k{n}"] = plain.take(pa.array(chosen, pa.int64()))
        number += size
        made.append(pa.record_batch(columns))
    return made


@pytest.mark.parametrize("kind", ORDERED, ids=str)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_both_kernels_sort_as_python_does(kind: pa.DataType, data: st.DataObject) -> None:
    batches = tables(data, [kind])
    spec = SortSpec(("k0",), (data.draw(st.booleans()),))
    rows = expected(spec, batches)
    assert in_order(spec, batches, "arrow") == rows
    assert in_order(spec, batches, "polars") == rows


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_with_any_budget_rows_are_sorted_by_several_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(ORDERED), min_size=1, max_size=3))
    batches = tables(data, kinds)
    descending = tuple(data.draw(st.booleans()) for _ in kinds)
    spec = SortSpec(tuple(f"k{n}" for n in range(len(kinds))), descending)
    rows = expected(spec, batches)
    budget = data.draw(st.none() | st.integers(0, 300))
    assert in_order(spec, batches, "arrow", budget=budget) == rows
    assert in_order(spec, batches, "polars", budget=budget) == rows


def test_a_dictionary_without_rows_is_sorted_with_any_budget() -> None:
    batch = pa.record_batch({"k0": pa.array(["a"]).dictionary_encode()}).slice(1)
    assert in_order(SortSpec(("k0",), (False,)), [batch], "arrow", budget=0) == []


@pytest.mark.parametrize("budget", [None, 0])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_another_sort_continues_from_a_snapshot(budget: int | None, data: st.DataObject) -> None:
    batches = tables(data, [pa.int8(), pa.string()])
    spec = SortSpec(("k0", "k1"), (False, True))
    order = Random(data.draw(st.integers(0, 9)))
    sorting = Sorting(spec, budget=budget)
    for batch in batches:
        sorting.add(batch)
    state = list(sorting.save())
    sorting.close()
    order.shuffle(state)
    other = Sorting(spec, budget=budget)
    for key, batch in state:
        other.restore(key, batch)
    other.add(batches[0])
    assert rows_of(other) == expected(spec, [*batches, batches[0]])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("step", [1, -1])
def test_a_part_that_is_too_large_is_divided_again(kernels: Kernels, step: int) -> None:
    """Rows that are sorted already all go to one part, because the first rows give the bounds."""
    numbers = pa.array(range(20_000)[::step], pa.int64())
    batches = pa.record_batch({"k": numbers, "row": numbers})
    pieces = [batches.slice(start, 500) for start in range(0, 20_000, 500)]
    found = in_order(SortSpec(("k",), (False,)), pieces, kernels, budget=20_000)
    assert [row for row, _ in found] == list(range(20_000))


def test_rows_with_one_key_stay_in_their_order_on_disk() -> None:
    batch = pa.record_batch({"k": pa.nulls(5_000, pa.int64()), "row": range(5_000)})
    found = in_order(SortSpec(("k",), (True,)), [batch, batch], "arrow", budget=1_000)
    assert [row for row, _ in found] == [*range(5_000), *range(5_000)]


def test_a_column_without_an_order_is_refused() -> None:
    batch = pa.record_batch({"tags": pa.array([["a"]])})
    with pytest.raises(InvalidBatch, match=r"vertex 'sort': the column 'tags' is list<.*no order"):
        in_order(SortSpec(("tags",), (False,)), [batch], "arrow")


def test_a_missing_column_is_named() -> None:
    batch = pa.record_batch({"day": [1]})
    with pytest.raises(InvalidBatch, match="vertex 'sort': there is no column 'dya'"):
        in_order(SortSpec(("dya",), (False,)), [batch], "arrow")


def test_a_column_whose_type_changes_is_named() -> None:
    batches = [pa.record_batch({"k": [1]}), pa.record_batch({"k": ["1"]})]
    with pytest.raises(InvalidBatch, match=r"vertex 'sort': the column 'k' is string .* int64"):
        in_order(SortSpec(("k",), (False,)), batches, "arrow")


@pytest.mark.parametrize(
    ("by", "descending", "message"),
    [
        ("day", False, r"by of sort\(\) must be a list of names of columns.*got 'day'"),
        ([], False, r"by of sort\(\) must be a list"),
        (["a", "b"], [True], r"descending of sort\(\) must be .* one for each of the 2 columns"),
        (["a"], "yes", r"descending of sort\(\) must be"),
    ],
)
def test_wrong_arguments_are_refused(by: Any, descending: Any, message: str) -> None:
    with pytest.raises(InvalidDAG, match=message):
        sort_spec(by, descending, where="sort()")


def test_one_direction_counts_for_all_columns() -> None:
    assert sort_spec(["a", "b"], True, where="sort()") == SortSpec(("a", "b"), (True, True))


def test_a_sort_of_no_rows_gives_an_empty_batch_with_the_columns() -> None:
    nothing = pa.record_batch({"k": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    sorting = Sorting(SortSpec(("k",), (False,)), vertex="sort")
    sorting.add(nothing)
    assert list(sorting.results()) == [nothing]
    assert list(Sorting(SortSpec(("k",), (False,)), vertex="sort").results()) == []


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("budget", [None, 0])
def test_a_column_without_values_in_some_batches_has_the_type_of_the_others(
    kernels: Kernels, budget: int | None
) -> None:
    nothing = pa.record_batch({"row": [0, 1], "k": pa.nulls(2)})
    something = pa.record_batch({"row": [2, 3], "k": ["b", "a"]})
    spec = SortSpec(("k",), (False,))
    for both in ([nothing, something], [something, nothing]):
        assert in_order(spec, both, kernels, budget=budget) == expected(spec, both)


@pytest.mark.parametrize("budget", [None, 0])
def test_dictionaries_of_all_batches_may_have_more_values_than_their_index(
    budget: int | None,
) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [pa.array([f"{n}.{i:03}" for i in range(100)]).cast(kind) for n in (1, 0)]
    both = [pa.record_batch({"row": range(100), "k": each}) for each in words]
    spec = SortSpec(("k",), (False,))
    assert in_order(spec, both, "arrow", budget=budget) == expected(spec, both)


@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), None], ids=str)
def test_batches_with_and_without_dictionaries_go_together(
    index: pa.DataType | None, budget: int | None
) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    few = pa.array(["b", "a"]).cast(kind)
    words = pa.array([str(n) for n in range(300 if index != pa.int8() else 3)])
    many = words if index is None else words.cast(pa.dictionary(index, pa.string()))
    spec = SortSpec(("k",), (False,))
    both = [pa.record_batch({"row": range(len(each)), "k": each}) for each in (few, many)]
    for batches in (both, both[::-1]):
        found = in_order(spec, batches, "arrow", budget=budget)
        assert found == expected(spec, batches)


def test_a_dictionary_may_have_a_null_among_its_values() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["c", None, "b"]))
    both = [pa.record_batch({"row": range(4), "k": words})] * 2
    spec = SortSpec(("k",), (False,))
    assert in_order(spec, both, "arrow") == expected(spec, both)
