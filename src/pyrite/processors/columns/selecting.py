"""filter and select of batches: rows for which an expression is true, and some of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import message_of, shorten
from pyrite.processors.columns.steps import BatchStep, Work
from pyrite.processors.ready_made import Inner
from pyrite.where import users_line

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


def filter_batches(expression: pc.Expression) -> Inner:
    """Keeps the rows for which an expression of pyarrow is true."""
    import pyarrow.compute as pc

    if not isinstance(expression, pc.Expression):
        raise InvalidDAG(
            f"filter() of batches in {users_line()} needs an expression, such as "
            f"pyarrow.compute.field('n') > 1; got {shorten(expression)}. For a function use "
            "map_batches()"
        )
    return Inner(FilterBatches(expression))


def select_columns(columns: Sequence[str]) -> Inner:
    """Keeps these columns."""
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidDAG(
            f"select() in {users_line()} needs the names of columns; got {shorten(columns)}"
        )
    if len(set(columns)) < len(columns):
        raise InvalidDAG(f"select() in {users_line()} names a column twice: {shorten(columns)}")
    return Inner(SelectColumns(tuple(columns)))


@dataclass(frozen=True, slots=True)
class FilterBatches(BatchStep):
    expression: pc.Expression
    suits_any_processor = True
    prefers = None

    def open(self, context: ProcessorContext) -> Work:
        return _FilterWork(self.expression, context.vertex_name)


class _FilterWork(Work):
    def __init__(self, expression: pc.Expression, vertex: str) -> None:
        self._expression = expression
        self._vertex = vertex
        self._has_given = False
        self._schema: Any = None
        """The schema of Polars of the frame before, and the columns that the filter looks at."""
        self._looked_at: tuple[str, ...] = ()

    def expect(self, schema: pa.Schema) -> pa.Schema | None:
        return schema

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        from pyrite.columns.frames import is_arrow, rows_in

        found = self._in_arrow(item) if is_arrow(item) else self._in_polars(item)
        if rows_in(found) or not self._has_given:  # the next step must know the columns
            self._has_given = True
            yield found

    def _in_arrow(self, item: Any) -> Any:
        from pyrite.columns.frames import as_batch

        batch = as_batch(item)
        try:
            return batch.filter(self._expression)
        except Exception as error:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot apply the filter {self._expression} to a batch "
                f"with the columns {_typed(batch)}: {message_of(error)}"
            ) from error

    def _in_polars(self, item: Any) -> Any:
        """Only the columns that the filter looks at become those of Arrow."""
        import polars as pl

        from pyrite.columns.frames import as_table
        from pyrite.processors.columns.sources.filters import columns_of, mask_of

        if item.schema != self._schema:
            empty = as_table(item.head(0))
            self._in_arrow(empty)  # raises if the filter does not fit
            self._schema = item.schema
            self._looked_at = columns_of(self._expression, empty.schema, "a batch", self._vertex)
        if not self._looked_at:
            return self._in_arrow(item)
        looked_at = as_table(item.select(self._looked_at))
        return item.filter(pl.Series(mask_of(self._expression, looked_at)))


@dataclass(frozen=True, slots=True)
class SelectColumns(BatchStep):
    columns: tuple[str, ...]
    suits_any_processor = True
    prefers = None

    def open(self, context: ProcessorContext) -> Work:
        return _SelectWork(self.columns, context.vertex_name)


class _SelectWork(Work):
    def __init__(self, columns: tuple[str, ...], vertex: str) -> None:
        self._columns = columns
        self._vertex = vertex

    def expect(self, schema: pa.Schema) -> pa.Schema | None:
        import pyarrow as pa

        if not set(self._columns) <= set(schema.names):
            return None
        return pa.schema([schema.field(name) for name in self._columns])

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        from pyrite.columns.frames import as_batch, is_arrow
        from pyrite.columns.schemas import position_of

        batch = as_batch(item if is_arrow(item) else item.head(0))
        where = f"vertex '{self._vertex}'"
        places = [position_of(batch.schema, name, where) for name in self._columns]
        yield batch.select(places) if is_arrow(item) else item.select(self._columns)


def _typed(batch: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in batch.schema)
