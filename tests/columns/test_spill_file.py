from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.spill_file import SpillFile


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3_000)), max_size=12))
def test_each_part_gives_its_rows_in_their_order(pieces: list[tuple[int, int]]) -> None:
    file = SpillFile(parts=4, memory=0)
    added: dict[int, list[int]] = {part: [] for part in range(4)}
    for number, (part, size) in enumerate(pieces):
        rows = list(range(number, number + size))
        file.add(part, pa.record_batch({"n": pa.array(rows, pa.int64())}))
        added[part] += rows
    for part, rows in added.items():
        assert [n for batch in file.read(part) for n in batch["n"].to_pylist()] == rows
        assert file.rows.get(part, 0) == len(rows)
    file.close()
