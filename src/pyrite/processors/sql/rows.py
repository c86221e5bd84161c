"""Writes the items of one processor to the staging table, and looks at each before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, types
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.sql.committing import target_of
from pyrite.processors.sql.faults import cause_of, explained, is_of_row, reason
from pyrite.processors.sql.kinds import allowed_types, misfit
from pyrite.processors.sql.staging import FIELDS, OWN, ROW, TAG, Staged, Staging, fields_of
from pyrite.processors.sql.writing import WriteSql
from pyrite.processors.steps import BadItem, Writer


@dataclass(frozen=True, slots=True)
class _Cell:
    """What one column takes."""

    name: str
    type: Any
    allowed: frozenset[Any]
    """Types whose values need no closer look."""
    takes_none: bool
    fills_none: bool
    """Whether NULL stands for a value that the database makes."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Items that have the same fields."""

    fields: str
    cells: tuple[_Cell, ...]


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
        self._waiting: list[tuple[dict[str, Any], Any]] = []
        self._row = 0
        self._counts: dict[str, int] = {}

    def write(self, items: list[Any]) -> None:
        if self._connection is None:
            self._connect()
        for item in items:
            self._waiting.append((self._parameters(item), item))
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
            self._target, _ = target_of(sink, vertex)
            self._staging = staging.table(self._target, staging.schema_to_write)
            self._cells = {c.name: _cell(c, self._target) for c in self._target.columns}
            self._connection = staging.engine().connect()
        kind = postgresql if self._connection.dialect.name == "postgresql" else sqlite
        insert: Any = kind.insert(self._staging)
        # A second attempt at the same work writes the same rows.
        self._insert = insert.on_conflict_do_nothing() if self._context.must_repeat else insert

    def _parameters(self, item: Any) -> dict[str, Any]:
        """The row of an item. Raises BadItem."""
        try:
            names = tuple(item.keys())
        except (AttributeError, TypeError):
            names = ()
        if not names or not isinstance(item, Mapping):
            raise self._refused(item, "it is not a dict from columns to values; make dicts before")
        shape = self._shapes.get(names)
        if shape is None:
            shape = self._shapes[names] = self._shape(item, names)
        row: dict[str, Any] = {TAG: self._tag, ROW: self._row, FIELDS: shape.fields}
        for cell in shape.cells:
            value = row[cell.name] = item.get(cell.name)
            if value is None:
                if not cell.takes_none:
                    raise self._refused(item, f"column '{cell.name}' must not be NULL")
            elif value.__class__ not in cell.allowed and (why := misfit(cell.type, value)):
                raise self._refused(
                    item, f"its field '{cell.name}' is {shorten(value, 40)}, but {why}"
                )
        self._row += 1
        return row

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
        lacks = [name for name in cells if name not in written and not cells[name].fills_none]
        if lacks:
            raise self._refused(
                item, f"it has no field '{lacks[0]}', and that column has no default value"
            )
        keys = sink.key if sink.mode == "upsert" else None
        for name in keys or ():
            if name not in names:
                raise self._refused(item, f"it has no field '{name}', which is of the key")
        ordered = [name for name in cells if name in written]
        chosen = [cells[name] for name in ordered]
        if keys is not None:  # NULL is not equal to NULL, so such rows would be added each time
            chosen = [
                _Cell(c.name, c.type, c.allowed, False, False) if c.name in keys else c
                for c in chosen
            ]
        return _Shape(fields_of(ordered), tuple(chosen))

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        by_fields: dict[str, list[dict[str, Any]]] = {}
        for row, _ in waiting:
            by_fields.setdefault(row[FIELDS], []).append(row)
        connection = self._connection
        assert connection is not None
        try:
            with connection.begin():
                for rows in by_fields.values():
                    connection.execute(self._insert, rows)
        except (SQLAlchemyError, ValueError, TypeError, OverflowError) as error:
            self._blame(waiting, error)
        for fields, rows in by_fields.items():
            self._counts[fields] = self._counts.get(fields, 0) + len(rows)

    def _blame(self, waiting: list[tuple[dict[str, Any], Any]], error: Exception) -> None:
        """Finds the item that the database refuses, by writing them one by one, and raises."""
        connection = self._connection
        assert connection is not None
        if is_of_row(error):
            for row, item in waiting:
                try:
                    with connection.begin() as only_tried:
                        connection.execute(self._insert, row)
                        only_tried.rollback()
                except (SQLAlchemyError, ValueError, TypeError, OverflowError) as refused:
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


def _cell(column: Any, table: Table) -> _Cell:
    if column.name in OWN:
        raise ProcessorError(f"table '{table.name}' has a column '{column.name}'; rename it")
    is_made = (
        column.server_default is not None
        or column.identity is not None
        or column.computed is not None
        or table.autoincrement_column is column
    )
    allowed = allowed_types(column.type)
    if allowed is None:
        allowed = frozenset()
    if isinstance(column.type, types.DateTime):
        allowed = frozenset()  # whether it has a zone must be looked at
    return _Cell(
        column.name,
        column.type,
        allowed,
        column.nullable or table.autoincrement_column is column,
        column.nullable or is_made,
    )
