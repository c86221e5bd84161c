from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.packing.splitting import Pieces, merged, split
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
@settings(max_examples=2)
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


def test_large_pieces_do_not_keep_their_batch_in_memory() -> None:
    batch = pa.record_batch({"n": np.arange(100_000)})
    for piece in split(batch, np.arange(100_000) % 4, 4):
        assert piece is not None
        assert piece.get_total_buffer_size() == piece.nbytes == 200_000


def test_small_pieces_that_wait_keep_little_memory() -> None:
    """Each batch has one row for target 0, which waits for long."""
    pieces = Pieces(most_kept=1 << 20)
    targets = np.array([0] + [1] * 4_999 + [2] * 5_000)
    before = pa.total_allocated_bytes()
    for start in range(100):
        for target, piece in enumerate(
            split(pa.record_batch({"n": np.arange(10_000) + start}), targets, 3)
        ):
            pieces.add(target, piece)
        del piece
    assert pa.total_allocated_bytes() - before < 4 << 20
    waiting = dict(pieces.rest())
    assert waiting[0]["n"].to_pylist() == list(range(100))


def test_a_small_piece_is_copied_before_it_travels() -> None:
    pieces = Pieces()
    first, _ = split(pa.record_batch({"n": np.arange(1_000)}), np.arange(1_000) % 2, 2)
    pieces.add(0, first)
    ((_, piece),) = pieces.rest()
    assert piece.get_total_buffer_size() == piece.nbytes == 4_000


def test_a_piece_has_only_the_values_of_a_dictionary_that_its_rows_have() -> None:
    words = [f"word {n}" for n in range(1_000)] + [None]
    batch = pa.record_batch({"k": pa.array(words).dictionary_encode()})
    pieces = split(batch, np.arange(1_001) // 10, 101)
    assert [len(piece["k"].dictionary) for piece in pieces if piece] == [*[10] * 100, 0]
    assert [word for piece in pieces if piece for word in piece["k"].to_pylist()] == words


def test_pieces_whose_dictionaries_are_too_large_together_are_not_put_together() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    first, second = (
        pa.record_batch({"k": pa.array([str(n) for n in numbers]).dictionary_encode().cast(kind)})
        for numbers in (range(100), range(50, 150))
    )
    pieces = Pieces()
    assert pieces.add(0, first) is None
    assert pieces.add(0, second) == first
    assert pieces.rest() == [(0, second)]


def test_batches_without_columns_keep_their_rows() -> None:
    batch = pa.record_batch({"n": [1, 2, 3]}).select([])
    assert merged([batch, batch]).num_rows == 6
    pieces = split(batch, np.array([0, 1, 0]), 2)
    assert [piece.num_rows for piece in pieces if piece is not None] == [2, 1]


def test_batches_without_rows_do_not_wait() -> None:
    pieces = Pieces()
    assert pieces.add(0, pa.record_batch({"n": pa.array([], pa.int64())})) is None
    assert pieces.rest() == []


def test_pieces_with_another_schema_do_not_wait_together() -> None:
    pieces = Pieces()
    assert pieces.add(0, pa.record_batch({"n": [1]})) is None
    before = pieces.add(0, pa.record_batch({"n": ["a"]}))
    assert before is not None
    assert before["n"].to_pylist() == [1]
    assert [rest["n"].to_pylist() for _, rest in pieces.rest()] == [["a"]]
