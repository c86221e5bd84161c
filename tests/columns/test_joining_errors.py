"""What a join says about sides that do not fit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyrite.columns.joining.spec import JoinSpec, join_spec
from pyrite.columns.schemas import InvalidBatch
from pyrite.errors import InvalidDAG
from tests.columns.joined_rows import batches

BY_ID = JoinSpec(("id",), ("id",))
ONE = pa.record_batch({"id": [1]})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int64(), pa.string()),
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.binary(), pa.dictionary(pa.int8(), pa.string())),
        (pa.list_(pa.int64()), pa.float64()),
    ],
    ids=str,
)
def test_types_whose_values_are_never_equal_are_refused(
    left: pa.DataType, right: pa.DataType
) -> None:
    one, other = (pa.record_batch({"id": pa.nulls(1, kind)}) for kind in (left, right))
    with pytest.raises(InvalidBatch) as caught:
        batches(BY_ID, [one], [other], "arrow")
    assert str(caught.value) == (
        "vertex 'join': the key columns 'id' of the left side and 'id' of the right side have the "
        f"types {left} and {right}, whose values are never equal; cast one of them before the join"
    )


def test_a_key_column_that_is_not_there_is_named_with_its_side() -> None:
    with pytest.raises(InvalidBatch, match="vertex 'join', right side: there is no column 'ix'"):
        batches(JoinSpec(("id",), ("ix",)), [ONE], [ONE], "arrow")
    with pytest.raises(InvalidBatch, match="vertex 'join', left side: there is no column 'ix'"):
        batches(JoinSpec(("ix",), ("id",)), [ONE], [ONE], "arrow")


def test_batches_of_a_side_whose_types_differ_are_refused() -> None:
    other = pa.record_batch({"id": ["1"]})
    with pytest.raises(InvalidBatch, match="right side: the column 'id' is string"):
        batches(BY_ID, [ONE], [ONE, other], "arrow")
    with pytest.raises(InvalidBatch, match="left side: the column 'id' is string"):
        batches(BY_ID, [ONE, other], [ONE], "arrow")


def test_a_name_that_is_taken_with_its_ending_too_is_refused() -> None:
    left = pa.record_batch({"id": [1], "n": [1], "n_right": [1]})
    right = pa.record_batch({"id": [1], "n": [1]})
    with pytest.raises(InvalidBatch, match="both sides have a column 'n', and the left side has"):
        batches(BY_ID, [left], [right], "arrow")


def test_a_right_key_that_does_not_fit_into_the_left_column_is_refused() -> None:
    left = pa.record_batch({"id": pa.array([1], pa.int8())})
    right = pa.record_batch({"id": [1.5]})
    with pytest.raises(InvalidBatch, match=r"its key 'id' \(double\) does not fit into .*\(int8\)"):
        batches(JoinSpec(("id",), ("id",), "full"), [left], [right], "arrow")


@pytest.mark.parametrize(
    ("left_on", "right_on", "how", "message"),
    [
        ("id", ["id"], "inner", r"left_on of join\(\) must be a list of names .*; got 'id'"),
        (["id"], [], "inner", r"right_on of join\(\) must be a list of names"),
        (["a", "b"], ["a"], "inner", r"left_on and right_on of join\(\) must name equally many"),
        (["a", "a"], ["a", "b"], "inner", r"left_on of join\(\) names a column twice"),
        (["a"], ["a"], "outer", r"how of join\(\) must be one of inner, left, .*; got 'outer'"),
    ],
)
def test_wrong_arguments_are_refused(left_on: Any, right_on: Any, how: str, message: str) -> None:
    with pytest.raises(InvalidDAG, match=message):
        join_spec(left_on, right_on, how, where="join()")


@pytest.mark.parametrize(
    ("left", "key", "why"),
    [
        (pa.bool_(), pa.array([5], pa.int8()), "5 would become True"),
        (pa.bool_(), pa.array([Decimal("0.5")]), "it has no value for 0.5"),
        (pa.float32(), pa.array([1e300]), "1e+300 would become inf"),
        (pa.float32(), pa.array([0.1]), "0.1 would become 0.10000000149011612"),
        (pa.int64(), pa.array([1.5]), "1.5 would become 1"),
        (
            pa.float64(),
            pa.array([Decimal("0.5"), Decimal("0." + 25 * "3")]),
            "333 would become 0.3",
        ),
    ],
    ids=str,
)
def test_a_right_key_that_would_change_is_refused(left: Any, key: pa.Array, why: str) -> None:
    sides = pa.record_batch({"a": pa.nulls(1, left)}), pa.record_batch({"b": key})
    with pytest.raises(InvalidBatch) as caught:
        batches(JoinSpec(("a",), ("b",), "right"), [sides[0]], [sides[1]], "arrow")
    says = f"its key 'b' ({key.type}) does not fit into the left side's 'a' ({left})"
    assert str(caught.value).startswith("vertex 'join': a row of the right side has no match")
    assert says in str(caught.value)
    assert why in str(caught.value)


def test_a_right_key_that_arrow_cannot_cast_is_kept_if_it_is_the_same() -> None:
    left = pa.record_batch({"a": pa.nulls(1, pa.dictionary(pa.int8(), pa.int64()))})
    right = pa.record_batch({"b": [7]})
    (row,) = batches(JoinSpec(("a",), ("b",), "right"), [left], [right], "arrow")
    assert row.to_pylist() == [{"a": 7}]
    assert row.schema == left.schema


def test_two_right_columns_of_one_name_are_refused() -> None:
    right = pa.RecordBatch.from_arrays([pa.array([1])] * 3, names=["id", "y", "y"])
    with pytest.raises(InvalidBatch, match="right side: there are several columns 'y'"):
        batches(BY_ID, [ONE], [right], "arrow")
