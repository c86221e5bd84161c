"""What a join says about sides that do not fit."""

from __future__ import annotations

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
