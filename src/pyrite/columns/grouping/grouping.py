"""Grouping: takes frames, and gives a row for each group when all have come.

Frames are gathered up to 128 MB before they are grouped: kernels are several times faster on
millions of rows. That makes one state after the other. They are folded into one when the later ones
have as many groups as the first, so that a group is folded a few times, and not with every frame.

With a memory budget, states that take more than half of it go to files, by the hash of the key. The
files are grouped one by one at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pyrite.columns import kernels as columns
from pyrite.columns.frames import Frame, as_table, batches_of, bytes_in, rows_in
from pyrite.columns.grouping import steps
from pyrite.columns.grouping.aggregates import GroupSpec
from pyrite.columns.grouping.inputs import Inputs
from pyrite.columns.grouping.kernels import ArrowKernels, Held, Kernels, kernels_for
from pyrite.columns.grouping.outputs import Outputs, overflow
from pyrite.columns.grouping.spilling import LEVELS, Spill
from pyrite.columns.spill_file import Tally

BYTES_GATHERED: Final = 128 << 20
"""The most bytes of frames that wait to be grouped, unless the budget is less than twice that."""


class Grouping:
    """Groups the rows, or the states, of all frames that are added.

    `budget` is the most bytes to hold in memory; None for no limit. With `keep_order`, the groups
    come in the order in which their keys first appear, part by part if they were spilled, and equal
    frames give equal results, to the last bit of sums of floats. `by=[]` makes one group of all
    rows, also of none if a frame without rows has come. A processor that gets no frame gives none.
    """

    def __init__(
        self,
        spec: GroupSpec,
        *,
        kernels: columns.Kernels = "arrow",
        budget: int | None = None,
        keep_order: bool = False,
        vertex: str,
        level: int = 0,
        tally: Tally | None = None,
    ) -> None:
        self._spec = spec
        self._kernel_name: columns.Kernels = kernels
        self._budget = budget
        self._keep_order = keep_order
        self._vertex = vertex
        self._level = level
        self._inputs = Inputs(spec, vertex)
        self._outputs = Outputs(spec, self._inputs, vertex)
        self._kernels: Kernels = ArrowKernels()
        self._gathered: list[Held] = []
        self._bytes_gathered = 0
        self._states: list[Held] = []
        self._spill: Spill | None = None
        self._tally = tally or Tally()
        self._restored: dict[int, pa.RecordBatch] = {}

    def add(self, frame: Frame) -> None:
        """Takes a frame: of rows, or of states if the grouping takes states."""
        self._settle()
        if self._spec.takes == "states":
            return self._add_states(frame)
        if self._inputs.add_rows(_schema_of(frame)):
            self._retype()
        if not rows_in(frame):
            return None
        return self._gather(self._kernels.held(frame, self._inputs.of_rows))

    def results(self) -> Iterator[pa.RecordBatch]:
        """The groups, or their states, in batches of a few megabytes. If there are none, and the
        types of the columns are known, one empty batch. Nothing can be added after it."""
        self._settle()
        self._group()
        self._fold()
        if self._spill is None:
            yield from self._given(self._states)
            return
        self._spill_states()
        spec = replace(self._spec, takes="states")
        for part in self._spill.parts():
            grouping = Grouping(
                spec,
                kernels=self._kernel_name,
                budget=self._budget,
                keep_order=self._keep_order,
                vertex=self._vertex,
                level=self._level + 1,
                tally=self._tally,
            )
            try:
                for batch in part:
                    grouping.add(batch)
                yield from grouping.results()
            finally:
                grouping.close()

    def save(self) -> Iterable[tuple[int, pa.RecordBatch]]:
        """The states of all groups, for `restore`. More frames can be added after it."""
        self._settle()
        self._group()
        self._fold()
        if self._spill is not None:
            self._spill_states()
            return enumerate(batch for part in self._spill.parts() for batch in part)
        return enumerate(self._states_of(self._states))

    def restore(self, key: int, batch: pa.RecordBatch) -> None:
        """Restores one pair of `save`, before any frame is added. The pairs may come in any
        order."""
        self._restored[key] = batch

    def close(self) -> None:
        """Deletes the files."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    @property
    def held_bytes(self) -> int:
        return self._bytes_gathered + sum(map(bytes_in, list(self._states)))

    @property
    def spilled_bytes(self) -> int:
        return self._tally.written

    def _settle(self) -> None:
        """Takes over what was restored, in the order in which it was saved."""
        restored, self._restored = self._restored, {}
        for _, batch in sorted(restored.items(), key=lambda pair: pair[0]):
            self._add_states(batch)

    def _add_states(self, frame: Frame) -> None:
        if self._inputs.add_states(_schema_of(frame)):
            self._retype()
        if rows_in(frame):
            states = self._kernels.held(frame, self._inputs.of_states)
            if self._spec.takes == "states":
                self._gather(states)
            else:
                self._states.append(states)

    def _gather(self, frame: Held) -> None:
        self._gathered.append(frame)
        self._bytes_gathered += bytes_in(frame)
        if self._bytes_gathered > min(BYTES_GATHERED, self._half_of_budget):
            self._group()

    def _group(self) -> None:
        """Makes a state of what is gathered."""
        if self._gathered:
            if self._spec.takes == "rows":
                each = steps.of_rows(self._inputs.parts, self._inputs.columns)
            else:
                each = steps.of_states(self._inputs.parts)
            self._states.append(self._grouped(self._gathered, each))
            self._gathered = []
            self._bytes_gathered = 0
        size = sum(map(bytes_in, self._states))
        if size > self._half_of_budget:
            self._fold()
            self._spill_if_too_large()
        elif sum(map(rows_in, self._states[1:])) >= sum(map(rows_in, self._states[:1])):
            self._fold()

    def _fold(self) -> None:
        """Makes one state of all."""
        if len(self._states) > 1:
            self._states = [self._grouped(self._states, steps.of_states(self._inputs.parts))]

    def _grouped(self, frames: list[Held], each: list[steps.Step]) -> Held:
        try:
            return self._kernels.grouped(
                self._kernels.together(frames),
                self._inputs.keys,
                each,
                keep_order=self._keep_order,
            )
        except steps.TooLarge as error:
            column = dict(zip((step.source for step in each), self._inputs.parts))[error.source]
            raise overflow(
                self._vertex,
                column.column,
                "has too many digits for a decimal in one of the groups",
            ) from None

    @property
    def _half_of_budget(self) -> int:
        return sys.maxsize if self._budget is None else self._budget // 2

    def _spill_if_too_large(self) -> None:
        (state,) = self._states
        can_be_split = rows_in(state) > 1 and self._level < LEVELS
        if can_be_split and bytes_in(state) > self._half_of_budget:
            self._spill_states()

    def _spill_states(self) -> None:
        if self._spill is None:
            self._spill = Spill(self._spec.by, self._level)
            self._spill.count_in(self._tally)
        states, self._states = self._states, []
        if states:
            self._spill.add(self._states_of(states))

    def _states_of(self, states: list[Held]) -> Iterator[pa.RecordBatch]:
        for state in states:
            for batch in batches_of(self._kernels.table_of(state)):
                yield self._outputs.states(batch)

    def _given(self, states: list[Held]) -> Iterator[pa.RecordBatch]:
        give = self._outputs.states if self._spec.gives == "states" else self._outputs.results
        if states:
            for batch in batches_of(self._kernels.table_of(states[0])):
                yield give(batch)
        elif self._inputs.is_known:
            yield give(self._inputs.no_groups() if self._spec.by else self._inputs.no_rows())

    def _retype(self) -> None:
        """Converts what is held after a type has become known."""
        old, new = self._kernels, kernels_for(self._kernel_name, self._inputs.held_kinds)
        kinds = {each.inside: each.kind for each in self._inputs.of_states}
        if self._spec.takes == "rows":
            kinds |= {each.inside: each.kind for each in self._inputs.of_rows}
        self._states = [new.frame_of(_retyped(old.table_of(each), kinds)) for each in self._states]
        self._gathered = [
            new.frame_of(_retyped(old.table_of(each), kinds)) for each in self._gathered
        ]
        self._kernels = new


def _schema_of(frame: Frame) -> pa.Schema:
    if isinstance(frame, pa.RecordBatch | pa.Table):
        return frame.schema
    return as_table(frame.head(0)).schema


def _retyped(table: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    """The table with these types. A column whose type changes has no values."""
    columns = {}
    for name, column in zip(table.column_names, table.columns):
        if column.type == kinds[name]:
            columns[name] = column
        elif name.startswith("s") and column.null_count < len(column):  # lists, all empty
            columns[name] = pa.array([[]] * len(column), kinds[name])
        else:
            columns[name] = pa.nulls(len(column), kinds[name])
    return pa.table(columns)
