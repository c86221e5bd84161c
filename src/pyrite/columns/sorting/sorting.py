"""Sorts all rows that arrive, within a memory budget.

Above the budget, rows go to disk in parts: ranges of the order. Each part is sorted by itself, or
divided again if it is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pyrite.columns.dictionaries import table_of
from pyrite.columns.frames import Frame, as_batch
from pyrite.columns.kernels import Kernels
from pyrite.columns.packing.splitting import split
from pyrite.columns.schemas import checked, completed
from pyrite.columns.sorting.ordering import Ordering
from pyrite.columns.spill_file import SpillFile, Tally
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten

MOST_ROWS: Final = 1 << 20
MOST_BYTES: Final = 64 << 20
"""A batch of the result has at most about so many rows and bytes."""
BOUNDS: Final = 31
SAMPLE: Final = 1 << 14
"""How many keys of a part are looked at, to divide it."""


@dataclass(frozen=True, slots=True)
class SortSpec:
    """The columns to sort by, and for each whether large values come first."""

    by: tuple[str, ...]
    descending: tuple[bool, ...]


def sort_spec(
    by: Sequence[str], descending: bool | Sequence[bool] = False, *, where: str
) -> SortSpec:
    """Checks what a user gives. `where` names the call for error messages."""
    is_list = not isinstance(by, str) and isinstance(by, Sequence)
    if not is_list or not by or not all(isinstance(name, str) for name in by):
        raise InvalidDAG(
            f"by of {where} must be a list of names of columns, such as ['day']; got {shorten(by)}"
        )
    each = [descending] * len(by) if isinstance(descending, bool) else descending
    is_list = isinstance(each, Sequence) and all(isinstance(one, bool) for one in each)
    if not is_list or len(each) != len(by):
        raise InvalidDAG(
            f"descending of {where} must be True or False, or a list of them with one for each of "
            f"the {len(by)} columns; got {shorten(descending)}"
        )
    return SortSpec(tuple(by), tuple(each))


class Sorting:
    """Takes frames, and gives all their rows in order."""

    def __init__(
        self,
        spec: SortSpec,
        *,
        kernels: Kernels = "arrow",
        budget: int | None = None,
        vertex: str = "",
    ) -> None:
        self._ordering = Ordering(spec.by, spec.descending, kernels)
        self._where = f"vertex '{vertex}'" if vertex else "a sort"
        self._budget = budget
        self._schema: pa.Schema | None = None
        self._rows = _Rows()
        self._parts: _Parts | None = None
        self._restored: dict[int, pa.RecordBatch] = {}
        self._tally = Tally()

    def add(self, frame: Frame) -> None:
        self._settle()
        self._add(frame)

    def results(self) -> Iterator[Frame]:
        """All rows, in order. If there are none, and the columns are known, an empty batch."""
        self._settle()
        if self._parts is not None:
            yield from self._parts.sorted()
            return
        yield from self._rows.sorted(self._ordering, self._where)

    def save(self) -> Iterable[tuple[int, pa.RecordBatch]]:
        """The state, from which another `Sorting` can continue. Not while `results` is being
        iterated over."""
        self._settle()
        return enumerate(self._rows.batches if self._parts is None else self._parts.all())

    def restore(self, key: int, batch: pa.RecordBatch) -> None:
        """Restores one pair of `save`. The pairs may come in any order."""
        self._restored[key] = batch

    def close(self) -> None:
        """Deletes what is on disk."""
        if self._parts is not None:
            self._parts.close()

    @property
    def held_bytes(self) -> int:
        return self._rows.size

    @property
    def spilled_bytes(self) -> int:
        return self._tally.written

    def _add(self, frame: Frame) -> None:
        batch = as_batch(frame)
        if self._schema is None:
            self._schema = batch.schema
            self._ordering.keys(batch.slice(0, 0), self._where)
        self._schema = completed(self._schema, batch.schema)
        batch = checked(batch, self._schema, self._where)
        if self._parts is not None:
            self._parts.add(batch)
            return
        self._rows.add(batch)
        if self._budget is not None and self._rows.size > self._budget:
            bounds = self._ordering.quantiles(
                _sampled(
                    (checked(each, self._schema, self._where) for each in self._rows.batches),
                    self._ordering,
                    self._where,
                ),
                BOUNDS,
            )
            self._parts = _Parts(self._ordering, bounds, self._budget, self._where, self._tally)
            for each in self._rows.batches:
                self._parts.add(checked(each, self._schema, self._where))
            self._rows = _Rows()

    def _settle(self) -> None:
        """Takes over what was restored, in the order in which it was saved."""
        restored, self._restored = self._restored, {}
        for _, batch in sorted(restored.items(), key=lambda pair: pair[0]):
            self._add(batch)


class _Rows:
    """Rows in memory."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.size = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        if batch.num_rows:  # a dictionary weighs something without rows, too
            self.size += batch.nbytes

    def sorted(self, ordering: Ordering, where: str) -> Iterator[Frame]:
        if not self.batches:
            return
        batches, self.batches = self.batches, []
        rows = as_batch(table_of(batches, where))
        order = ordering.order(ordering.keys(rows, where))
        size = max(1, rows.nbytes // max(1, rows.num_rows))
        most = min(MOST_ROWS, max(1, MOST_BYTES // size))
        for start in range(0, max(1, rows.num_rows), most):
            yield rows.take(pa.array(order[start : start + most]))


class _Parts:
    """Rows on disk, in ranges between bounds. Rows that equal a bound are a part of their own."""

    def __init__(
        self, ordering: Ordering, bounds: pa.RecordBatch, budget: int, where: str, tally: Tally
    ) -> None:
        self._ordering, self._bounds, self._where = ordering, bounds, where
        self._budget, self._tally = budget, tally
        self._count = 2 * bounds.num_rows + 1
        self._file = SpillFile(parts=self._count, memory=budget // 4, tally=tally)
        self._sizes = [0] * self._count
        self._schema: pa.Schema | None = None
        self._inner: _Parts | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        self._schema = batch.schema
        keys = self._ordering.keys(batch, self._where)
        targets = self._ordering.ranges(keys, self._bounds)
        for part, piece in enumerate(split(batch, targets, self._count)):
            if piece is not None:
                self._sizes[part] += piece.nbytes
                self._file.add(part, piece)

    def all(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are. Those with equal keys are in the order in which they came."""
        for part in sorted(self._file.rows):
            yield from self._read(part)

    def sorted(self) -> Iterator[Frame]:
        for part in sorted(self._file.rows):
            if part % 2:  # all rows equal the bound
                yield from self._read(part)
            elif self._sizes[part] <= self._budget:
                rows = _Rows()
                for batch in self._read(part):
                    rows.add(batch)
                yield from rows.sorted(self._ordering, self._where)
            else:
                yield from self._divided(part)

    def close(self) -> None:
        self._file.close()
        if self._inner is not None:
            self._inner.close()

    def _read(self, part: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part, with the types that the last batch has: it may have types for columns
        that had no values before."""
        assert self._schema is not None
        for batch in self._file.read(part):
            yield checked(batch, self._schema, self._where)

    def _divided(self, part: int) -> Iterator[Frame]:
        every = max(1, self._file.rows[part] // SAMPLE)
        sample = _sampled(self._read(part), self._ordering, self._where, every=every)
        bounds = self._ordering.quantiles(sample, BOUNDS)
        self._inner = _Parts(self._ordering, bounds, self._budget, self._where, self._tally)
        for batch in self._read(part):
            self._inner.add(batch)
        yield from self._inner.sorted()
        self._inner.close()
        self._inner = None


def _sampled(
    batches: Iterable[pa.RecordBatch], ordering: Ordering, where: str, *, every: int = 1
) -> pa.RecordBatch:
    """The keys of one of so many rows."""
    samples = []
    skipped = 0
    for batch in batches:
        numbers = np.arange(-skipped % every, batch.num_rows, every)
        skipped += batch.num_rows
        samples.append(ordering.keys(batch.take(pa.array(numbers)), where))
    return as_batch(pa.Table.from_batches(samples))
