"""Writes the items of one processor to the staging table, and looks at each before.

Rows go to the driver as tuples, and to PostgreSQL by COPY: an INSERT of SQLAlchemy takes many times
as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Dialect, Table

from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.loops.steps import BadItem, Writer
from pyrite.processors.sql.committing import target_of
from pyrite.processors.sql.faults import cause_of, explained, is_of_row, reason
from pyrite.processors.sql.kinds import misfit, sure_types
from pyrite.processors.sql.staging import OWN, Staged, Staging, fields_of
from pyrite.processors.sql.tables import IS_MADE
from pyrite.processors.sql.writing import WriteSql


@dataclass(frozen=True, slots=True)
class _Cell:
    """What one column takes."""

    name: str
    type: Any
    sure: frozenset[Any]
    """Types whose values need no closer look."""
    takes_none: bool
    fills_none: bool
    """Whether NULL stands for a value that the database makes."""
    bind: Callable[[Any], Any] | None
    """What the driver gets for a value."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Items that have the same fields."""

    fields: str
    cells: tuple[_Cell, ...]
    insert: str
    copy: str | None
    """The statements for rows with these fields. None if the driver has no COPY."""


class RowWriter(Writer):
    """Connects when it gets its first items."""

    def __init__(self, sink: WriteSql, context: ProcessorContext) -> None:
        self._sink = sink
        self._context = context
        self._vertex = context.vertex_name
        attempt = f"{context.start}same" if context.must_repeat else context.attempt
        self._tag = f"{context.global_index:07d}-{attempt}"
        self._connection: Connection | None = None
        self._shapes: dict[tuple[Any, ...], _Shape] = {}
        self._waiting: list[tuple[_Shape, tuple[Any, ...], Any]] = []
        self._row = 0
        self._counts: dict[str, int] = {}

    def write(self, items: list[Any]) -> None:
        if self._connection is None:
            self._connect()
        for item in items:
            self._waiting.append((*self._row_of(item), item))
            if len(self._waiting) >= self._sink.batch_size:
                self._flush()

    def complete(self) -> Staged:
        if self._waiting:
            self._flush()
        return Staged(self._tag, self._counts)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> None:
        sink, vertex = self._sink, self._vertex
        with explained(sink.address, vertex, f"write to table '{sink.table}' of"):
            staging = Staging.of(sink, self._context)
            self._target, _ = target_of(sink, vertex, is_checked=True)
            self._staging = staging.table(self._target, staging.schema_to_write)
            self._connection = staging.connect()
            dialect = self._connection.dialect
            self._cells = {c.name: _cell(c, self._target, dialect) for c in self._target.columns}

    def _row_of(self, item: Any) -> tuple[_Shape, tuple[Any, ...]]:
        """Raises BadItem."""
        try:
            names = tuple(item.keys())
        except (AttributeError, TypeError):
            names = ()
        if isinstance(item, Mapping) and not names:
            raise self._refused(item, "it has no fields; leave it out, or give it some")
        if not isinstance(item, Mapping):
            raise self._refused(item, "it is not a dict from columns to values; make dicts before")
        shape = self._shapes.get(names)
        if shape is None:
            shape = self._shapes[names] = self._shape(item, names)
        row: list[Any] = [self._tag, self._row, shape.fields]
        for cell in shape.cells:
            value = item.get(cell.name)
            if value is None:
                if not cell.takes_none:
                    raise self._refused(item, f"column '{cell.name}' must not be NULL")
            elif value.__class__ not in cell.sure and (why := misfit(cell.type, value)):
                raise self._refused(
                    item, f"its field '{cell.name}' is {shorten(value, 40)}, but {why}"
                )
            elif cell.bind is not None:
                try:
                    value = cell.bind(value)
                except (ValueError, TypeError, AttributeError) as error:
                    raise self._refused(item, f"its field '{cell.name}': {error}") from error
            row.append(value)
        self._row += 1
        return shape, tuple(row)

    def _shape(self, item: Any, names: tuple[Any, ...]) -> _Shape:
        sink, cells = self._sink, self._cells
        written = sink.columns or names
        for name in written:
            if name not in cells:
                raise self._refused(
                    item,
                    f"the table has no column {name!r}; it has: {', '.join(cells)}. Name those to "
                    "write with columns=[...]",
                )
        keys = sink.key if sink.mode == "upsert" else None
        for name in keys or ():
            if name not in names:
                raise self._refused(item, f"it has no field '{name}', which is of the key")
        lacks = [name for name in cells if name not in written and not cells[name].fills_none]
        if lacks:
            raise self._refused(
                item, f"it has no field '{lacks[0]}', and that column has no default value"
            )
        ordered = [name for name in cells if name in written]
        chosen = [cells[name] for name in ordered]
        if keys is not None:  # NULL is not equal to NULL, so such rows would be added each time
            chosen = [replace(c, takes_none=False) if c.name in keys else c for c in chosen]
        return _Shape(fields_of(ordered), tuple(chosen), *self._statements(ordered))

    def _statements(self, names: Sequence[str]) -> tuple[str, str | None]:
        assert self._connection is not None
        dialect = self._connection.dialect
        quote = dialect.identifier_preparer
        columns = ", ".join(map(quote.quote, (*OWN, *names)))
        table, is_sqlite = quote.format_table(self._staging), dialect.name == "sqlite"
        marks = ", ".join(["?" if is_sqlite else "%s"] * (len(OWN) + len(names)))
        insert = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        if self._context.must_repeat:  # a second attempt at the same work writes the same rows
            return f"{insert} ON CONFLICT DO NOTHING", None
        has_copy = dialect.driver == "psycopg"
        copy = f"COPY {table} ({columns}) FROM STDIN".replace("%%", "%")
        return insert, copy if has_copy else None

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        by_shape: dict[str, tuple[_Shape, list[tuple[Any, ...]]]] = {}
        for shape, row, _ in waiting:
            by_shape.setdefault(shape.fields, (shape, []))[1].append(row)
        connection = self._connection
        assert connection is not None
        try:
            with connection.begin():
                for shape, rows in by_shape.values():
                    _send(connection, shape, rows)
        except Exception as error:  # some drivers raise other errors than those of databases
            self._blame(waiting, error)
        for fields, (_, rows) in by_shape.items():
            self._counts[fields] = self._counts.get(fields, 0) + len(rows)

    def _blame(
        self, waiting: Sequence[tuple[_Shape, tuple[Any, ...], Any]], error: Exception
    ) -> None:
        """Finds the item that the database refuses, by writing them one by one, and raises."""
        connection = self._connection
        assert connection is not None
        for shape, row, item in waiting if is_of_row(error) else ():
            try:
                with connection.begin() as only_tried:
                    connection.exec_driver_sql(shape.insert, row)
                    only_tried.rollback()
            except Exception as refused:
                if not is_of_row(refused):
                    break
                said = reason(refused, self._sink.address)
                raise self._refused(item, said) from cause_of(refused)
        said = reason(error, self._sink.address)
        raise ProcessorError(
            f"vertex '{self._vertex}' cannot write to table '{self._sink.table}' of "
            f"{self._sink.address}: {said}"
        ) from cause_of(error)

    def _refused(self, item: Any, why: str) -> BadItem:
        return BadItem(
            f"vertex '{self._vertex}' cannot write item {shorten(item)} to table "
            f"'{self._sink.table}': {why}",
            item,
        )


def _send(connection: Connection, shape: _Shape, rows: list[tuple[Any, ...]]) -> None:
    if shape.copy is None:
        connection.exec_driver_sql(shape.insert, rows)
        return
    raw: Any = connection.connection.dbapi_connection
    with raw.cursor() as cursor, cursor.copy(shape.copy) as copy:
        for row in rows:
            copy.write_row(row)


def _cell(column: Any, table: Table, dialect: Dialect) -> _Cell:
    if column.name in OWN:
        raise ProcessorError(f"table '{table.name}' has a column '{column.name}'; rename it")
    return _Cell(
        column.name,
        column.type,
        sure_types(column.type),
        column.nullable,
        column.nullable or column.info.get(IS_MADE, False),
        column.type.dialect_impl(dialect).bind_processor(dialect),
    )
