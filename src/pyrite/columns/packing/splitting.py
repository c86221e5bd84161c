"""Splits batches by the targets of their rows, and puts small pieces together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.dictionaries import dictionary_columns, fit_together, without_unused

Array = np.ndarray[Any, np.dtype[Any]]

FULL_BYTES: Final = 1 << 20
FULL_ROWS: Final = 1 << 16
LARGE_ROWS: Final = 1 << 14
"""Pieces with so many rows are copied one by one, which takes little more time than all at once."""


def split(batch: pa.RecordBatch, targets: Array, count: int) -> list[pa.RecordBatch | None]:
    """The rows of each target from 0 to `count - 1`, in their order; None for a target without
    rows. Small pieces are slices of one copy of the batch, and keep all of it in memory; `Pieces`
    takes care of that. Large ones do not.

    >>> batch = pa.record_batch({"n": [1, 2, 3]})
    >>> [piece and piece["n"].to_pylist() for piece in split(batch, np.array([2, 0, 2]), 3)]
    [[2], None, [1, 3]]
    """
    rows = np.bincount(targets, minlength=count)
    used = np.flatnonzero(rows).tolist()
    pieces: list[pa.RecordBatch | None] = [None] * count
    if len(used) == 1:
        pieces[used[0]] = batch
        return pieces
    order = pa.array(order_of(targets, count))
    is_large = batch.num_rows >= LARGE_ROWS * len(used)
    copied = None if is_large else pc.take(batch, order, boundscheck=False)
    encoded = dictionary_columns(batch.schema)
    start = 0
    for target in used:
        size = int(rows[target])
        if copied is None:
            piece = pc.take(batch, order.slice(start, size), boundscheck=False)
        else:
            piece = copied.slice(start, size)
        pieces[target] = without_unused(piece, encoded)
        start += size
    return pieces


def order_of(targets: Array, count: int) -> Array:
    """The numbers of the rows, in the order of their targets; rows of one target keep theirs."""
    # NumPy sorts integers of up to 16 bits in linear time.
    kind = np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.int64
    return np.argsort(targets.astype(kind, copy=False), kind="stable")


def merged(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one new batch. The batches have the same schema. A slice is copied, so that the
    rest of its batch is not kept."""
    schema = batches[0].schema
    if not len(schema):
        rows = pa.nulls(sum(batch.num_rows for batch in batches))
        return pa.record_batch([rows], [""]).select([]).replace_schema_metadata(schema.metadata)
    columns = [
        pa.concat_arrays([batch.column(number) for batch in batches])
        for number in range(len(schema))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Pieces:
    """Collects small batches for each target until they are worth to travel.

    A piece may be a slice that keeps a large batch in memory. So after every `most_kept` bytes that
    were added, the pieces that wait are copied, and small ones before they travel."""

    def __init__(
        self,
        *,
        full_bytes: int = FULL_BYTES,
        full_rows: int = FULL_ROWS,
        most_kept: int | None = None,
    ) -> None:
        self._full_bytes = full_bytes
        self._full_rows = full_rows
        self._most_kept = 8 * full_bytes if most_kept is None else most_kept
        self._kept = 0
        self._waiting: dict[int, _Waiting] = {}

    def add(self, target: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Adds a batch for a target. Returns a batch if enough rows wait for that target, or if the
        new batch cannot be put together with those that wait, because its schema is another."""
        if not batch.num_rows:
            return None
        waiting = self._waiting.get(target)
        if waiting is None:
            waiting = self._waiting[target] = _Waiting()
        before = None if waiting.fits(batch) else waiting.taken()
        size = batch.nbytes
        waiting.add(batch, size)
        self._kept += size
        if before is None and (waiting.rows >= self._full_rows or waiting.size >= self._full_bytes):
            before = waiting.taken()
        if self._kept >= self._most_kept:
            self._kept = 0
            for each in self._waiting.values():
                each.copy()
        return before

    def rest(self) -> list[tuple[int, pa.RecordBatch]]:
        """What still waits, by target. After it nothing waits."""
        waiting, self._waiting = self._waiting, {}
        self._kept = 0
        return [(target, each.taken()) for target, each in waiting.items() if each.rows]


class _Waiting:
    """What waits for one target: batches with memory of their own, and then new ones."""

    __slots__ = ("_encoded", "_new", "_own", "_schema", "rows", "size")

    def __init__(self) -> None:
        self._own: list[pa.RecordBatch] = []
        self._new: list[pa.RecordBatch] = []
        self._schema: pa.Schema = None
        self._encoded: list[int] = []
        self.rows = 0
        self.size = 0

    def fits(self, batch: pa.RecordBatch) -> bool:
        if not self.rows:
            return True
        if not self._schema.equals(batch.schema, check_metadata=True):
            return False
        return not self._encoded or fit_together([*self._own, *self._new, batch], self._encoded)

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        if not self.rows:
            self._schema = batch.schema
            self._encoded = dictionary_columns(batch.schema)
        self._new.append(batch)
        self.rows += batch.num_rows
        self.size += size

    def copy(self) -> None:
        if self._new:
            self._own.append(merged(self._new))
            self._new = []

    def taken(self) -> pa.RecordBatch:
        if self.rows < LARGE_ROWS:
            self.copy()
        batches = self._own + self._new
        self._own, self._new = [], []
        self.rows = self.size = 0
        return batches[0] if len(batches) == 1 else merged(batches)
