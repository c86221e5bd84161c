"""Both kinds of kernels behind one interface: frames of Arrow or Polars, with the types and names
of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.types as of

from pyrite.columns import kernels as columns
from pyrite.columns.frames import Frame, as_table
from pyrite.columns.grouping import arrow_kernels
from pyrite.columns.grouping.steps import Step
from pyrite.columns.grouping.types import as_held

if TYPE_CHECKING:
    import polars as pl

Held: TypeAlias = Any  # a pa.Table or a pl.DataFrame, as the kernels have it


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is taken out of frames: its name there; its name and its type in memory. A
    column without a name has only nulls."""

    name: str | None
    inside: str
    kind: pa.DataType


class Kernels(Protocol):
    def held(self, frame: Frame, columns: Sequence[Column]) -> Held:
        """Columns of a frame, with the names and types of memory."""
        ...

    def together(self, frames: Sequence[Held]) -> Held: ...

    def grouped(
        self, frame: Held, keys: Sequence[str], steps: Sequence[Step], *, keep_order: bool
    ) -> Held:
        """One row per distinct key: the keys, and the target of each step. With `keep_order`, the
        rows are in the order in which their keys first appear, and equal input gives equal output.
        """
        ...

    def table_of(self, frame: Held) -> pa.Table: ...

    def frame_of(self, table: pa.Table) -> Held: ...


class ArrowKernels:
    def held(self, frame: Frame, columns: Sequence[Column]) -> pa.Table:
        table = as_table(frame)
        return pa.table({each.inside: as_held(_taken(table, each), each.kind) for each in columns})

    def together(self, frames: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables(frames)

    def grouped(
        self, frame: pa.Table, keys: Sequence[str], steps: Sequence[Step], *, keep_order: bool
    ) -> pa.Table:
        return arrow_kernels.grouped(frame, keys, steps, keep_order=keep_order)

    def table_of(self, frame: pa.Table) -> pa.Table:
        return frame

    def frame_of(self, table: pa.Table) -> pa.Table:
        return table


class PolarsKernels:
    def held(self, frame: Frame, columns: Sequence[Column]) -> pl.DataFrame:
        from pyrite.columns.grouping import polars_kernels

        if not isinstance(frame, pa.RecordBatch | pa.Table):
            return polars_kernels.held(frame, {each.inside: each.name for each in columns})
        table = as_table(frame)
        return polars_kernels.as_polars(
            pa.table({each.inside: _for_polars(_taken(table, each), each.kind) for each in columns})
        )

    def together(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        import polars as pl

        return pl.concat(frames, rechunk=False)

    def grouped(
        self, frame: pl.DataFrame, keys: Sequence[str], steps: Sequence[Step], *, keep_order: bool
    ) -> pl.DataFrame:
        from pyrite.columns.grouping import polars_kernels

        return polars_kernels.grouped(frame, keys, steps, keep_order=keep_order)

    def table_of(self, frame: pl.DataFrame) -> pa.Table:
        from pyrite.columns.grouping import polars_kernels

        return polars_kernels.as_arrow(frame)

    def frame_of(self, table: pa.Table) -> pl.DataFrame:
        from pyrite.columns.grouping import polars_kernels

        return polars_kernels.as_polars(table)


def kernels_for(name: columns.Kernels, kinds: Sequence[pa.DataType]) -> Kernels:
    """The kernels for columns of these types of memory: Polars, if it is asked for and takes them
    all; otherwise Arrow, which gives the same results."""
    if name == "arrow":
        return ArrowKernels()
    from pyrite.columns.grouping import polars_kernels

    return PolarsKernels() if all(map(polars_kernels.takes, kinds)) else ArrowKernels()


def _taken(table: pa.Table, column: Column) -> pa.ChunkedArray:
    if column.name is None:
        return pa.chunked_array([pa.nulls(table.num_rows)])
    return table[column.name]


def _for_polars(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column with its type in memory. Polars makes its own strings of strings of any type, so
    they need not be converted before."""
    if of.is_string(column.type) or of.is_binary(column.type):
        return column
    return as_held(column, kind)
