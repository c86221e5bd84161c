"""Splits batches by the targets of their rows, and puts small pieces together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

FULL_BYTES: Final = 1 << 20
FULL_ROWS: Final = 1 << 16


def split(batch: pa.RecordBatch, targets: Array, count: int) -> list[pa.RecordBatch | None]:
    """The rows of each target from 0 to `count - 1`, in their order; None for a target without
    rows. The pieces are slices of one batch, and keep all of it in memory.

    >>> batch = pa.record_batch({"n": [1, 2, 3]})
    >>> [piece and piece["n"].to_pylist() for piece in split(batch, np.array([2, 0, 2]), 3)]
    [[2], None, [1, 3]]
    """
    rows = np.bincount(targets, minlength=count)
    used = np.flatnonzero(rows)
    pieces: list[pa.RecordBatch | None] = [None] * count
    if len(used) == 1:
        pieces[used[0]] = batch
        return pieces
    sorted_rows = taken(batch, order_of(targets, count))
    ends = np.cumsum(rows)
    for target in used.tolist():
        pieces[target] = sorted_rows.slice(int(ends[target] - rows[target]), int(rows[target]))
    return pieces


def order_of(targets: Array, count: int) -> Array:
    """The numbers of the rows, in the order of their targets; rows of one target keep theirs."""
    # NumPy sorts integers of up to 16 bits in linear time.
    kind = np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.int64
    return np.argsort(targets.astype(kind, copy=False), kind="stable")


def taken(batch: pa.RecordBatch, rows: Array) -> pa.RecordBatch:
    """A batch of these rows."""
    return batch.take(pa.array(rows))


def merged(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one new batch. The batches have the same schema. A slice is copied, so that the
    rest of its batch is not kept."""
    schema = batches[0].schema
    columns = [
        pa.concat_arrays([batch.column(number) for batch in batches])
        for number in range(len(schema))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Pieces:
    """Collects small batches for each target until they are worth to travel."""

    def __init__(self, *, full_bytes: int = FULL_BYTES, full_rows: int = FULL_ROWS) -> None:
        self._full_bytes = full_bytes
        self._full_rows = full_rows
        self._waiting: dict[int, _Waiting] = {}

    def add(self, target: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Adds a batch for a target. Returns a batch if enough rows wait for that target, or if the
        new batch has another schema than those that wait."""
        waiting = self._waiting.get(target)
        if waiting is None:
            waiting = self._waiting[target] = _Waiting()
        before = None
        if waiting.batches and not waiting.batches[0].schema.equals(batch.schema, True):
            before = waiting.taken()
        waiting.add(batch)
        if before is not None:
            return before
        if waiting.rows >= self._full_rows or waiting.size >= self._full_bytes:
            return waiting.taken()
        return None

    def rest(self) -> Iterable[tuple[int, pa.RecordBatch]]:
        """What still waits, by target. After it nothing waits."""
        waiting, self._waiting = self._waiting, {}
        return [(target, each.taken()) for target, each in waiting.items() if each.batches]


class _Waiting:
    __slots__ = ("batches", "rows", "size")

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.size = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes

    def taken(self) -> pa.RecordBatch:
        batches, self.batches = self.batches, []
        self.rows = self.size = 0
        return batches[0] if len(batches) == 1 else merged(batches)
