from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.splitting import Pieces, merged, split
from tests.columns.arrays import TYPES, arrays

TARGETS = st.lists(st.integers(0, 6), max_size=30)


@given(TARGETS)
def test_each_target_gets_its_rows_in_their_order(targets: list[int]) -> None:
    batch = pa.record_batch({"row": np.arange(len(targets))})
    pieces = split(batch, np.array(targets, np.int32), 7)
    for target, piece in enumerate(pieces):
        rows = [row for row, its in enumerate(targets) if its == target]
        assert (piece["row"].to_pylist() if piece is not None else []) == rows


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=5)
@given(data=st.data())
def test_rows_of_every_type_are_split_and_merged(kind: pa.DataType, data: st.DataObject) -> None:
    batch = as_batch(pa.record_batch({"k": data.draw(arrays(kind, min_size=1))}))
    pieces = split(batch, np.arange(batch.num_rows) % 3, 3)
    again = merged([piece for piece in pieces if piece is not None])
    rows = repr([row for start in range(3) for row in batch["k"].to_pylist()[start::3]])
    assert repr(again["k"].to_pylist()) == rows
    assert again.schema == batch.schema


def test_more_targets_than_16_bits() -> None:
    batch = pa.record_batch({"n": [1, 2, 3]})
    pieces = split(batch, np.array([99_999, 3, 65_539]), 100_000)
    found = {target: piece["n"].to_pylist() for target, piece in enumerate(pieces) if piece}
    assert found == {3: [2], 65_539: [3], 99_999: [1]}


def test_a_batch_whose_rows_have_one_target_is_not_copied() -> None:
    batch = pa.record_batch({"n": [1, 2, 3]})
    assert split(batch, np.array([1, 1, 1]), 3) == [None, batch, None]


def test_a_batch_without_rows_has_no_pieces() -> None:
    batch = pa.record_batch({"n": pa.array([], pa.int64())})
    assert split(batch, np.array([], np.int32), 2) == [None, None]


def test_pieces_are_put_together_until_there_are_enough_rows() -> None:
    pieces = Pieces(full_rows=4)
    batch = pa.record_batch({"n": [1, 2]})
    assert pieces.add(0, batch) is None
    assert pieces.add(1, batch) is None
    full = pieces.add(0, batch)
    assert full is not None
    assert full["n"].to_pylist() == [1, 2, 1, 2]
    assert [(target, rest.num_rows) for target, rest in pieces.rest()] == [(1, 2)]
    assert not list(pieces.rest())


def test_pieces_are_put_together_until_there_are_enough_bytes() -> None:
    pieces = Pieces(full_bytes=1_000)
    batch = pa.record_batch({"s": ["x" * 600]})
    assert pieces.add(0, batch) is None
    full = pieces.add(0, batch)
    assert full is not None
    assert full.num_rows == 2


def test_pieces_with_another_schema_do_not_wait_together() -> None:
    pieces = Pieces()
    assert pieces.add(0, pa.record_batch({"n": [1]})) is None
    before = pieces.add(0, pa.record_batch({"n": ["a"]}))
    assert before is not None
    assert before["n"].to_pylist() == [1]
    assert [rest["n"].to_pylist() for _, rest in pieces.rest()] == [["a"]]
