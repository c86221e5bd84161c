"""Joins of batches of rows. The right side arrives first and is held; then the left side flows.

Left rows stay in their order, and the matches of a left row are in the order of the right side. If
the right side takes more memory than the budget, both sides go to disk, and the order is that of
the parts in which they are joined; it depends on the rows and their order alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pyrite.columns.frames import Frame, as_batch, is_arrow
from pyrite.columns.joining.blocks import joined_in_blocks
from pyrite.columns.joining.columns_out import ColumnsOut
from pyrite.columns.joining.held import Held
from pyrite.columns.joining.matches import Pairs
from pyrite.columns.joining.spec import JoinHow, JoinSpec, join_spec
from pyrite.columns.joining.spilled import Spilled
from pyrite.columns.kernels import Kernels
from pyrite.columns.schemas import checked, completed, position_of
from pyrite.columns.spill_file import Tally

__all__ = ["JoinHow", "JoinSpec", "Joining", "join_spec"]

INDEX_BYTES = 16
"""About how many bytes a right row takes in the lookup of its key."""


class Joining:
    """One processor's part of a join, within a memory budget in bytes."""

    def __init__(
        self,
        spec: JoinSpec,
        *,
        kernels: Kernels = "arrow",
        budget: int | None = None,
        vertex: str = "",
        level: int = 0,
        tally: Tally | None = None,
    ) -> None:
        self._spec, self._kernels, self._vertex = spec, kernels, vertex
        self._budget, self._level = budget, level
        self._where = f"vertex '{vertex}'" if vertex else "a join"
        self._held = self._new_held(spec)
        self._size = 0
        self._tally = tally or Tally()
        self._spilled: Spilled | None = None
        self._right: pa.Schema | None = None
        self._left: pa.Schema | None = None
        self._polars_left: Any = None
        """The Polars schema that was checked last."""
        self._restored: dict[tuple[str, int], pa.RecordBatch] = {}
        self._has_given = False

    def hold(self, frame: Frame) -> None:
        """Adds rows of the right side. An empty frame makes its columns known."""
        self._settle()
        self._hold(frame)

    def end_held(self) -> None:
        """All of the right side was held."""
        self._settle()

    def match(self, frame: Frame) -> Iterator[Frame]:
        """What the join makes of a left frame. It may come with a later frame, or with `rest`."""
        self._settle()
        frame = self._checked_left(frame)
        if self._spilled is not None:
            self._spilled.add_left(as_batch(frame))
            return
        for made in self._held.match(frame):
            self._has_given = True
            yield made

    def rest(self) -> Iterator[Frame]:
        """What is left when both sides have ended. A join without any rows gives an empty frame:
        the next step must know the columns."""
        for made in self._rest():
            self._has_given = True
            yield made
        if not self._has_given and self._left is not None:
            yield self._nothing(self._left)

    def save(self) -> Iterable[tuple[tuple[str, int], pa.RecordBatch]]:
        """The state, from which another `Joining` can continue. Not while `match` or `rest` is
        being iterated over."""
        self._settle()
        state = self._held.saved() if self._spilled is None else self._spilled_state(self._spilled)
        return (((kind, number), batch) for number, (kind, batch) in enumerate(state))

    def restore(self, key: tuple[str, int], batch: pa.RecordBatch) -> None:
        """Restores one pair of `save`. The pairs may come in any order."""
        self._restored[key[0], key[1]] = batch

    def close(self) -> None:
        """Deletes what is on disk."""
        if self._spilled is not None:
            self._spilled.close()

    @property
    def held_bytes(self) -> int:
        return self._size if self._spilled is None else 0

    @property
    def spilled_bytes(self) -> int:
        return self._tally.written

    def _new_held(self, spec: JoinSpec) -> Held:
        return Held(spec, self._kernels, self._where, budget=self._budget)

    def _hold(self, frame: Frame) -> None:
        batch = as_batch(frame)
        side = f"{self._where}, right side"
        if self._spec.only_filters:
            batch = batch.select([position_of(batch.schema, n, side) for n in self._spec.right_on])
        if self._right is None:
            for name in self._spec.right_on:
                position_of(batch.schema, name, side)
            self._right = batch.schema
        self._right = completed(self._right, batch.schema)
        batch = checked(batch, self._right, side)
        if self._spilled is not None:
            self._spilled.add_right(batch)
            return
        self._held.hold(batch)
        self._size += batch.nbytes + INDEX_BYTES * batch.num_rows
        if self._budget is not None and self._size > self._budget and not self._restored:
            self._spill(self._budget)

    def _spill(self, budget: int) -> None:
        self._spilled = Spilled(self._spec, budget=budget, level=self._level, tally=self._tally)
        for batch in self._held.right():
            self._spilled.add_right(batch)
        self._held = self._new_held(self._spec)

    def _checked_left(self, frame: Frame) -> Frame:
        side = f"{self._where}, left side"
        if not is_arrow(frame):
            if self._polars_left is not None and frame.schema == self._polars_left:
                return frame
            batch = as_batch(frame[:0])
        else:
            frame = batch = as_batch(frame)
        if self._left is None:
            for name in self._spec.left_on:
                position_of(batch.schema, name, side)
            self._left = batch.schema
        self._left = completed(self._left, batch.schema)
        fitting = checked(batch, self._left, side)
        if is_arrow(frame):
            return fitting
        if completed(batch.schema, self._left) != batch.schema:  # a column has no values here
            return checked(as_batch(frame), self._left, side)
        self._polars_left = frame.schema
        return frame.select(self._left.names)

    def _rest(self) -> Iterator[Frame]:
        self._settle()
        if self._spilled is None:
            yield from self._held.rest()
            return
        for part in self._spilled.parts():
            yield from self._part(self._spilled, part)

    def _nothing(self, left: pa.Schema) -> Frame:
        right = None if self._right is None else self._right.empty_table()
        out = ColumnsOut(self._spec, left, right, self._where)
        return out.pairs(left.empty_table(), Pairs(None, np.zeros(0, np.int64)))

    def _part(self, spilled: Spilled, part: int) -> Iterator[Frame]:
        right_schema = self._right
        assert right_schema is not None
        assert self._budget is not None

        def left() -> Iterator[pa.RecordBatch]:
            if self._left is not None:  # the part may have no left rows, but their columns count
                yield as_batch(self._left.empty_table())
                for batch in spilled.left(part):
                    yield checked(batch, self._left, self._where)

        if not spilled.can_be_divided(part):
            right = (checked(each, right_schema, self._where) for each in spilled.right(part))
            yield from joined_in_blocks(self._spec, left, right, self._new_held, self._budget)
            return
        inner = Joining(
            self._spec,
            kernels=self._kernels,
            budget=self._budget,
            vertex=self._vertex,
            level=self._level + 1,
            tally=self._tally,
        )
        try:
            inner.hold(right_schema.empty_table())
            for batch in spilled.right(part):
                inner.hold(batch)
            for batch in left():
                yield from inner.match(batch)
            yield from inner._rest()
        finally:
            inner.close()

    def _spilled_state(self, spilled: Spilled) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._right is not None:
            yield "right", as_batch(self._right.empty_table())
        for part in spilled.parts():
            for batch in spilled.right(part):
                yield "right", batch
        if self._left is not None:
            yield "left", as_batch(self._left.empty_table())
        for part in spilled.parts():
            for batch in spilled.left(part):
                yield "left", batch

    def _settle(self) -> None:
        """Takes over what was restored, in the order in which it was saved."""
        if not self._restored:
            return
        restored = sorted(self._restored.items(), key=lambda pair: pair[0][1])
        kinds = {kind for kind, _ in self._restored}
        if "matched" not in kinds:  # else these are flags of rows in memory, which must stay there
            self._restored = {}
        for (kind, _), batch in restored:
            if kind == "right":
                self._hold(batch)
            elif kind == "matched":
                self._held.restore_matched(batch)
            elif self._spilled is not None:
                self._spilled.add_left(self._checked_left(batch))
            else:
                self._held.wait(self._checked_left(batch))
        self._restored = {}
