"""The frames that joins take and give: their columns, types and sizes."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.joining import held
from pyrite.columns.joining.joining import Joining
from pyrite.columns.joining.spec import HOWS, JoinHow, JoinSpec
from pyrite.columns.kernels import Kernels
from tests.columns.arrays import TYPES, arrays
from tests.columns.joined_rows import batches, expected, joined, sides

KERNELS: tuple[Kernels, ...] = ("arrow", "polars")
BY_ID = JoinSpec(("id",), ("id",))
IDS = pa.array([1, 2, 3, 2], pa.int64())


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_columns_of_every_type_are_carried_along(kind: pa.DataType, data: st.DataObject) -> None:
    some = data.draw(arrays(kind, min_size=4, max_size=4))
    left = [as_batch(pa.record_batch({"id": IDS, "a": some}))]
    others = data.draw(arrays(kind, min_size=4, max_size=4))
    right = [
        as_batch(pa.record_batch({"id": IDS.slice(1), "b": each[1:]})) for each in (some, others)
    ]
    spec = JoinSpec(("id",), ("id",), data.draw(st.sampled_from(HOWS)))
    kernels = data.draw(st.sampled_from(KERNELS))
    assert joined(spec, left, right, kernels) == expected(spec, left, right)
    for batch in batches(spec, left, right, kernels, budget=data.draw(st.sampled_from([None, 0]))):
        types = [pa.int64(), left[0].column("a").type, right[0].column("b").type]
        assert batch.schema.types == (types[:2] if spec.only_filters else types)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_polars_frames_are_joined_as_batches_are(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([pa.int64(), pa.large_string(), pa.float64(), pa.date32()]))
    left, right = sides(data, [kind])
    spec = JoinSpec(("k0",), ("k0",), data.draw(st.sampled_from(HOWS)))
    lefts: list[Any] = [pl.from_arrow(batch) for batch in left]
    rights: list[Any] = [pl.from_arrow(batch) for batch in right]
    kernels = data.draw(st.sampled_from(KERNELS))
    rows = expected(spec, left, right)
    assert joined(spec, lefts, right, kernels) == rows
    assert joined(spec, lefts, rights, kernels) == rows
    assert joined(spec, left, rights, kernels) == rows


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_polars_frame_becomes_a_polars_frame(kernels: Kernels) -> None:
    joining = Joining(BY_ID, kernels=kernels)
    joining.hold(pa.record_batch({"id": IDS, "name": ["a", "b", "c", "d"]}))
    joining.end_held()
    (made,) = joining.match(pl.DataFrame({"id": [3, 4, 2]}))
    assert made.to_dicts() == [
        {"id": 3, "name": "c"},
        {"id": 2, "name": "b"},
        {"id": 2, "name": "d"},
    ]


def test_types_that_polars_does_not_have_stay() -> None:
    joining = Joining(BY_ID)
    seconds = pa.array([0, 1, 2, 3], pa.timestamp("s"))
    joining.hold(pa.record_batch({"id": IDS, "at": seconds}))
    made: Any
    (made,) = joining.match(pl.DataFrame({"id": [3]}))
    assert made.schema.field("at").type == pa.timestamp("s")


def test_columns_that_both_sides_have_are_renamed() -> None:
    left = [pa.record_batch({"id": [1], "name": ["l"], "day": [0]})]
    right = [pa.record_batch({"name": ["r"], "key": [1], "id": [5]})]
    (made,) = batches(JoinSpec(("id",), ("key",)), left, right, "arrow")
    assert made.to_pylist() == [{"id": 1, "name": "l", "day": 0, "name_right": "r", "id_right": 5}]


def test_right_rows_without_a_match_have_their_keys_in_the_left_columns() -> None:
    left = [pa.record_batch({"a": pa.array([1], pa.int32()), "x": ["l"]})]
    right = [pa.record_batch({"b": pa.array([7.0]), "y": ["r"]})]
    (made,) = batches(JoinSpec(("a",), ("b",), "right"), left, right, "arrow")
    assert made.to_pylist() == [{"a": 7, "x": None, "y": "r"}]
    assert made.schema.field("a").type == pa.int32()


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("inner", []),
        ("semi", []),
        ("left", [{"id": 1}]),
        ("anti", [{"id": 1}]),
        ("full", [{"id": 1}]),
    ],
)
def test_without_any_right_batch_no_row_has_a_match(how: JoinHow, rows: list[Any]) -> None:
    made = batches(JoinSpec(("id",), ("id",), how), [pa.record_batch({"id": [1]})], [], "arrow")
    assert [row for batch in made for row in batch.to_pylist()] == rows


def test_an_empty_right_batch_makes_its_columns_known() -> None:
    empty = pa.record_batch({"id": [1], "name": ["a"]}).slice(0, 0)
    (made,) = batches(
        JoinSpec(("id",), ("id",), "left"), [pa.record_batch({"id": [1]})], [empty], "arrow"
    )
    assert made.to_pylist() == [{"id": 1, "name": None}]


@pytest.mark.parametrize("budget", [None, 0])
def test_without_any_left_batch_right_rows_have_the_columns_that_are_known(
    budget: int | None,
) -> None:
    right = [pa.record_batch({"b": [1], "name": ["a"]})]
    (made,) = batches(JoinSpec(("a",), ("b",), "full"), [], right, "arrow", budget=budget)
    assert made.to_pylist() == [{"a": 1, "name": "a"}]


@pytest.mark.parametrize("kernels", KERNELS)
def test_many_matches_come_in_pieces(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_ROWS", 1_000)
    side = pa.record_batch({"id": pa.array([7] * 120), "n": range(120)})
    made = batches(BY_ID, [side], [side], kernels)
    assert max(batch.num_rows for batch in made) == 1_000
    pairs = [(row["n"], row["n_right"]) for batch in made for row in batch.to_pylist()]
    assert pairs == [(a, b) for a in range(120) for b in range(120)]


@pytest.mark.parametrize("kernels", KERNELS)
def test_small_left_frames_wait_for_each_other_if_many_keys_are_held(kernels: Kernels) -> None:
    names = [f"key {n}" for n in range(100)]
    joining = Joining(JoinSpec(("name",), ("name",)), kernels=kernels)
    joining.hold(pa.record_batch({"name": names}))
    joining.end_held()
    small = pa.record_batch({"name": ["key 3"]})
    assert list(joining.match(small)) == []
    assert [
        as_batch(made).num_rows for made in joining.match(pa.record_batch({"name": names * 2}))
    ] == [201]
    assert list(joining.match(small)) == []
    assert [as_batch(made).to_pylist() for made in joining.rest()] == [[{"name": "key 3"}]]


@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("how", HOWS)
def test_a_join_without_rows_gives_an_empty_batch_with_all_columns(
    how: JoinHow, budget: int | None
) -> None:
    left = pa.record_batch({"k": pa.array([1, 2]), "l": ["a", "b"]})
    right = pa.record_batch({"k": pa.array([3, 4]), "r": [1.5, None]})
    if how in ("left", "full"):
        left = left.slice(0, 0)
    if how in ("right", "full"):
        right = right.slice(0, 0)
    if how == "anti":
        right = left
    (nothing,) = batches(JoinSpec(("k",), ("k",), how), [left], [right], "arrow", budget=budget)
    assert nothing.num_rows == 0
    types = [pa.int64(), pa.string()] + ([] if how in ("semi", "anti") else [pa.float64()])
    assert nothing.schema.types == types


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("how", HOWS)
def test_a_column_that_has_no_values_in_the_first_batch_has_the_type_of_a_later_one(
    how: JoinHow, budget: int | None, kernels: Kernels
) -> None:
    nothing = pa.record_batch({"id": pa.nulls(2), "v": pa.nulls(2)})
    something = pa.record_batch({"id": ["a", "b"], "v": [1, None]})
    other = pa.record_batch({"id": ["b", "c"], "v": [3, 4]})
    for left in ([nothing, something], [something, nothing]):
        for right in ([nothing, other], [other, nothing]):
            spec = JoinSpec(("id",), ("id",), how)
            found = joined(spec, left, right, kernels, budget=budget)
            assert sorted(found, key=str) == sorted(expected(spec, left, right), key=str)


@pytest.mark.parametrize("budget", [None, 0])
def test_dictionaries_of_all_batches_may_have_more_values_than_their_index(
    budget: int | None,
) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [pa.array([f"{n}.{i}" for i in range(100)]).cast(kind) for n in range(2)]
    right = [pa.record_batch({"id": range(100), "w": each}) for each in words]
    found = joined(BY_ID, [pa.record_batch({"id": [7]})], right, "arrow", budget=budget)
    assert found == [(7, "0.7"), (7, "1.7")]


@pytest.mark.parametrize("budget", [None, 5_000])
def test_sides_with_and_without_dictionaries_go_together(budget: int | None) -> None:
    words = pa.array([str(n) for n in range(300)])
    few = words.slice(0, 2).cast(pa.dictionary(pa.int8(), pa.string()))
    sides = [pa.record_batch({"id": few, "w": few}), pa.record_batch({"id": words, "w": words})]
    spec = JoinSpec(("id",), ("id",), "full")
    for left in (sides, sides[::-1]):
        for right in (sides, sides[::-1]):
            found = joined(spec, left, right, "arrow", budget=budget)
            assert sorted(found) == sorted(expected(spec, left, right))


def test_a_dictionary_may_have_a_null_among_its_values() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, "b"]))
    right = [pa.record_batch({"id": IDS, "w": words}), pa.record_batch({"id": IDS, "w": words})]
    found = joined(BY_ID, [pa.record_batch({"id": [1, 2]})], right, "arrow")
    assert found == [(1, "a"), (1, "a"), (2, None), (2, "b"), (2, None), (2, "b")]
