"""A join whose right side is in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyrite.columns.dictionaries import table_of, unified
from pyrite.columns.frames import Frame, as_batch, as_table, bytes_in, is_arrow, rows_in
from pyrite.columns.joining.columns_out import ColumnsOut, take
from pyrite.columns.joining.key_pairs import KeyPair, key_pair
from pyrite.columns.joining.lookup import Codes, Lookup, lookup
from pyrite.columns.joining.matches import Matches
from pyrite.columns.joining.spec import JoinSpec
from pyrite.columns.kernels import Kernels
from pyrite.columns.schemas import completed, may_be_completed, position_of

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
MOST_ROWS = 1 << 20
MOST_BYTES = 64 << 20
"""A frame of the result has at most about so many rows and bytes."""


class Held:
    """The right side of a join, and the matches that left frames have in it."""

    def __init__(self, spec: JoinSpec, kernels: Kernels, where: str, *, budget: int | None) -> None:
        self._spec, self._kernels, self._where = spec, kernels, where
        self._most_waiting = MOST_BYTES if budget is None else min(MOST_BYTES, budget // 2)
        self._most_codes = sys.maxsize if budget is None else budget // 8
        self._batches: list[pa.RecordBatch] = []
        self._right: pa.Table | None = None
        self._left: pa.Schema | None = None
        self._pairs: list[KeyPair] = []
        self._lookup: Lookup | None = None
        self._matches: Matches | None = None
        self._out: ColumnsOut | None = None
        self._is_matched: Flags | None = None
        """Which right rows have had a match, if the join keeps those that have none."""
        self._waiting: list[Frame] = []
        self._waiting_rows = self._waiting_bytes = 0

    def hold(self, batch: pa.RecordBatch) -> None:
        """Adds rows of the right side."""
        self._batches.append(batch)

    def match(self, frame: Frame) -> Iterator[Frame]:
        """The result of a left frame, in pieces. A small frame waits for others if a lookup would
        go through many more right rows than it has rows."""
        if self._completes(frame):
            yield from self._waited()
            self._left = None
        self.wait(frame)
        cost = 0 if self._lookup is None else self._lookup.fixed_cost
        if self._waiting_rows >= 2 * cost or self._waiting_bytes >= self._most_waiting:
            yield from self._waited()

    def wait(self, frame: Frame) -> None:
        """Adds a left frame that is looked up together with the next ones."""
        self._begin(frame)
        if rows_in(frame):
            self._waiting.append(frame)
            self._waiting_rows += rows_in(frame)
            self._waiting_bytes += bytes_in(frame)

    def rest(self) -> Iterator[Frame]:
        """The result of the left frames that wait, and the right rows that have had no match."""
        yield from self._waited()
        if self._spec.keeps_right:
            yield from self._alone()

    def has(self, frame: Frame) -> Flags:
        """Which rows of a left frame have a match."""
        self._begin(frame)
        codes = self._codes(frame)
        if codes is None or self._matches is None:
            return np.zeros(rows_in(frame), np.bool_)
        return self._matches.has(codes)

    def right(self) -> list[pa.RecordBatch]:
        """What is held, for a snapshot or for the disk. An empty batch has the columns."""
        if self._right is None:
            return self._batches
        return self._right.to_batches() or [as_batch(self._right)]

    def saved(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """What is here, in order: right rows, left rows that wait, and which right rows have had a
        match."""
        for batch in self.right():
            yield "right", batch
        if self._left is not None:
            yield "left", as_batch(self._left.empty_table())
        for frame in self._waiting:
            yield "left", as_batch(frame)
        if self._is_matched is not None:
            yield "matched", pa.record_batch({"matched": pa.array(self._is_matched)})

    def restore_matched(self, batch: pa.RecordBatch) -> None:
        self._is_matched = batch.column(0).to_numpy(zero_copy_only=False).copy()

    def _table(self) -> pa.Table | None:
        """All right rows. None if there was no batch, not even an empty one."""
        if self._right is None and self._batches:
            self._right = table_of(self._batches, self._where).combine_chunks()
            self._batches = []
        return self._right

    def _begin(self, frame: Frame) -> None:
        """Prepares the lookup with the first left frame: its types decide how keys compare."""
        if self._left is not None:
            return
        self._left = as_batch(frame[:0]).schema
        right, spec = self._table(), self._spec
        self._out = ColumnsOut(spec, self._left, right, self._where)
        if right is None:
            return
        self._pairs = []
        keys = []
        for name, other in zip(spec.left_on, spec.right_on):
            left_type = self._left.field(position_of(self._left, name, self._where)).type
            pair = key_pair(left_type, right.schema.field(other).type, self._both(name, other))
            self._pairs.append(pair)
            keys.append(_converted(pair.right, right.column(other)))
        self._lookup = lookup(keys, self._kernels, most_codes=self._most_codes)
        self._matches = Matches(self._lookup)
        if spec.keeps_right and self._is_matched is None:
            self._is_matched = np.zeros(right.num_rows, np.bool_)

    def _completes(self, frame: Frame) -> bool:
        """Whether a left frame has other types than those before it, which can hold all of them."""
        if self._left is None or not may_be_completed(self._left):
            return False
        return not completed(self._left, as_batch(frame[:0]).schema).equals(self._left)

    def _both(self, left: str, right: str) -> Any:
        return lambda: (
            f"{self._where}: the key columns {left!r} of the left side and {right!r} of the right "
            "side"
        )

    def _waited(self) -> Iterator[Frame]:
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._waiting_bytes = 0
        if waiting:
            yield from self._matched(_one(waiting))

    def _matched(self, frame: Frame) -> Iterator[Frame]:
        out, spec = self._out, self._spec
        assert out is not None
        codes = self._codes(frame)
        if codes is None:
            if spec.how in ("left", "full", "anti"):
                yield frame
            return
        matches = self._matches
        assert matches is not None
        if spec.only_filters:
            yield from filtered(frame, matches.has(codes), spec.how == "semi")
            return
        most = out.rows_within(frame, MOST_BYTES, MOST_ROWS)
        for pairs in matches.pairs(codes, keeps_left=spec.keeps_left, most=most):
            if self._is_matched is not None:
                self._is_matched[pairs.right[pairs.right >= 0]] = True
            yield out.pairs(frame, pairs)

    def _codes(self, frame: Frame) -> Codes | None:
        """The codes of the frame's keys; None if there is no right side."""
        if self._lookup is None:
            return None
        keys = [
            _converted(pair.left, key_column(frame, name))
            for pair, name in zip(self._pairs, self._spec.left_on)
        ]
        return self._lookup.find(keys)

    def _alone(self) -> Iterator[Frame]:
        right = self._table()
        if right is None or not right.num_rows:
            return
        if self._left is None:  # there was no left frame, so only its keys are known
            fields = [
                right.schema.field(other).with_name(name)
                for name, other in zip(self._spec.left_on, self._spec.right_on)
            ]
            self._left = pa.schema(fields)
            self._out = ColumnsOut(self._spec, self._left, right, self._where)
        assert self._out is not None
        if self._is_matched is None:
            rows = np.arange(right.num_rows)
        else:
            rows = np.flatnonzero(~self._is_matched)
        most = self._out.rows_within(None, MOST_BYTES, MOST_ROWS)
        for start in range(0, len(rows), most):
            yield self._out.alone(rows[start : start + most])


def key_column(frame: Any, name: str) -> Any:
    """A column of a frame as an Arrow array. Strings of Polars stay as they are."""
    if is_arrow(frame):
        return frame.column(name)
    import polars as pl

    return frame.get_column(name).to_arrow(compat_level=pl.CompatLevel.newest())


def _converted(convert: Any, column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # more than 2 GB of strings
            chunks = [convert(chunk) for chunk in column.chunks]
            return pa.concat_arrays([_widened(chunk) for chunk in chunks])
    return convert(column)


def _widened(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary(array.type) else array


def _one(frames: Sequence[Frame]) -> Frame:
    """One frame with all rows."""
    if len(frames) == 1:
        return frames[0]
    if any(map(is_arrow, frames)):
        tables = [as_table(frame) for frame in frames]
        return unified(pa.concat_tables(tables)).combine_chunks()
    import polars as pl

    return pl.concat(frames)


def filtered(frame: Frame, is_there: Flags, wanted: bool) -> Iterator[Frame]:
    """The rows of a left frame that have a match, or those that have none."""
    rows = np.flatnonzero(is_there if wanted else ~is_there)
    if len(rows):
        yield frame if len(rows) == len(is_there) else take(frame, rows)
