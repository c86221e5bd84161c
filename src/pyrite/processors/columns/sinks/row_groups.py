"""Rows put together to groups of one size, however they come in batches: attempts at the same work
get the same rows, but maybe in other batches, and must make the same files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

_SAMPLE = 1024
_MOST_ROWS = 1 << 20


class RowGroups:
    """Groups of a number of rows; or of about so many bytes, by the size of the first rows. The
    batches have one schema."""

    def __init__(self, *, rows: int | None = None, size: int = 0) -> None:
        self._rows = rows
        self._size = size
        self._batches: list[pa.RecordBatch] = []
        self._count = 0
        self._schema: pa.Schema | None = None

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """The groups that are full."""
        self._schema = batch.schema
        self._batches.append(batch)
        self._count += batch.num_rows
        rows = self._rows
        if rows is None:
            if self._count < _SAMPLE:
                return
            sample = self._all().slice(0, _SAMPLE).combine_chunks()
            fitting = self._size * _SAMPLE // max(sample.nbytes, 1)
            rows = self._rows = min(max(fitting, _SAMPLE), _MOST_ROWS)
        if self._count < rows:
            return
        held = self._all()
        full = held.num_rows // rows * rows
        self._batches = held.slice(full).to_batches()
        self._count = held.num_rows - full
        for start in range(0, full, rows):
            yield held.slice(start, rows)

    def rest(self) -> pa.Table | None:
        """The rows that are left; None if there never was a batch."""
        rest = None if self._schema is None else self._all()
        self._batches, self._count = [], 0
        return rest

    def _all(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._schema)
