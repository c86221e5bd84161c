"""Writes rows to a Parquet file, in row groups of bounded size, with a schema that is given or that
fits the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.formats import Written
from pyrite.processors.files.parquet.kinds import (
    NO_FIELDS,
    CannotStore,
    CannotUnite,
    Fields,
    arrow_schema,
    columns_of,
    fields_of,
    unite,
)
from pyrite.processors.files.parquet.pieces import (
    ROWS_PER_GROUP,
    Piece,
    as_one_piece,
    cannot_unite,
    field_name,
    widened,
)
from pyrite.processors.files.storage import Storage
from pyrite.processors.steps import BadItem, Writer

ROWS_AT_A_TIME = 4096
"""How many rows become arrays at a time."""
BYTES_PER_GROUP = 1 << 26

_CONVERSION_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ParquetWriter(Writer):
    """Rows are gathered to row groups. When the rows of a group need another schema than those
    before, a new piece begins; in the end all pieces become one."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        vertex: str,
        schema: pa.Schema | None,
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._name = name
        self._vertex = vertex
        self._given = schema
        self._fields = NO_FIELDS
        self._examples: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []
        self._blocks: list[tuple[int, dict[str, pa.Array]]] = []
        self._rows_in_blocks = 0
        self._bytes_in_blocks = 0
        self._pieces: list[Piece] = []
        self._file = storage.open(f"{folder}/{name}", "wb")
        self._writer: pq.ParquetWriter | None = None

    def write(self, items: list[Any]) -> None:
        for item in items:
            if not isinstance(item, dict):
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows, so each item must be a dict; got "
                    f"{shorten(item)}",
                    item,
                )
        self._rows += items
        if len(self._rows) >= ROWS_AT_A_TIME:
            self._take_rows()

    def complete(self) -> Written:
        self._take_rows()
        if self._blocks or self._writer is None:
            self._write_group()
        self.close()
        if self._given is not None:
            return Written(self._name)
        piece = as_one_piece(self._storage, self._folder, self._vertex, self._pieces)
        return Written(piece.name, piece)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._file.close()

    def _take_rows(self) -> None:
        """Turns the rows that have gathered into arrays."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            fields = self._fields if self._given is not None else self._fields_with(rows)
            arrays = self._arrays(rows, fields)
        except (CannotUnite, CannotStore, *_CONVERSION_ERRORS) as error:
            self._raise_for_item(rows, error)
        self._fields = fields
        self._blocks.append((len(rows), arrays))
        self._rows_in_blocks += len(rows)
        self._bytes_in_blocks += sum(array.nbytes for array in arrays.values())
        if arrays and (
            self._rows_in_blocks >= ROWS_PER_GROUP or self._bytes_in_blocks >= BYTES_PER_GROUP
        ):
            self._write_group()

    def _fields_with(self, rows: Sequence[dict[str, Any]]) -> Fields:
        """The fields that fit these rows and all before."""
        found = fields_of(rows)
        if found == self._fields:
            return found
        fields: Fields = unite(self._fields, found)
        for name, kind in fields.kinds.items():
            if kind != self._fields.kinds.get(name):
                example = next((row for row in rows if row.get(name) is not None), None)
                self._examples[name] = example if example is not None else rows[0]
        return fields

    def _arrays(self, rows: Sequence[dict[str, Any]], fields: Fields) -> dict[str, pa.Array]:
        """The columns that have values in these rows, with their final types as far as known."""
        if self._given is None:
            schema = arrow_schema(fields)
        else:
            schema = self._given
            unknown = set().union(*set(map(tuple, rows))) - set(schema.names)
            if unknown:
                raise CannotStore((str(min(map(str, unknown))),), "the schema has no such field")
        arrays = {}
        for name, values in columns_of(rows, schema.names).items():
            field = schema.field(name)
            try:
                arrays[name] = pa.array(values, type=field.type)
            except _CONVERSION_ERRORS as error:
                raise CannotStore((name,), str(error)) from error
            if not field.nullable and arrays[name].null_count:
                raise CannotStore((name,), "it is None, and the schema says that it is not null")
        return arrays

    def _raise_for_item(self, rows: Sequence[dict[str, Any]], error: Exception) -> NoReturn:
        """Finds the item that could not be taken."""
        fields = self._fields
        for row in rows:
            try:
                if self._given is None:
                    fields = unite(fields, fields_of([row]))
                self._arrays([row], fields)
            except CannotUnite as found:
                example = self._examples.get(found.path[0], rows[0])
                text = cannot_unite(self._vertex, found, example)
                raise BadItem(f"{text}: {shorten(row)}", row) from None
            except (CannotStore, *_CONVERSION_ERRORS) as found:
                self._raise_for_row(row, found)
        for row in rows:  # each can be stored, but not all in one column
            try:
                self._arrays([row], self._fields_with(rows))
            except (CannotStore, *_CONVERSION_ERRORS) as found:
                self._raise_for_row(row, found)
        raise error

    def _raise_for_row(self, row: dict[str, Any], error: Exception) -> NoReturn:
        field = f"field '{field_name(error.path)}' of " if isinstance(error, CannotStore) else ""
        raise BadItem(
            f"vertex '{self._vertex}' cannot write {field}an item to Parquet: {error}: "
            f"{shorten(row)}",
            row,
        ) from error

    def _write_group(self) -> None:
        fields = self._fields
        schema = self._given if self._given is not None else arrow_schema(fields)
        self._begin_piece(schema, fields)
        blocks, self._blocks = self._blocks, []
        rows, self._rows_in_blocks, self._bytes_in_blocks = self._rows_in_blocks, 0, 0
        assert self._writer is not None
        if schema.names and rows:
            columns = [
                self._column([(n, arrays.get(field.name)) for n, arrays in blocks], field)
                for field in schema
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=schema), rows)
        last = self._pieces[-1]
        self._pieces[-1] = Piece(last.name, fields, last.rows + rows, dict(self._examples))

    def _begin_piece(self, schema: pa.Schema, fields: Fields) -> None:
        if self._writer is not None and self._pieces[-1].fields == fields:
            return
        name = self._name
        if self._writer is not None:
            self.close()
            name = f"{self._name}.{len(self._pieces)}"
            self._file = self._storage.open(f"{self._folder}/{name}", "wb")
        self._writer = pq.ParquetWriter(self._file, schema)
        self._pieces.append(Piece(name, fields, 0, {}))

    def _column(
        self, arrays: Sequence[tuple[int, pa.Array | None]], field: pa.Field
    ) -> pa.ChunkedArray:
        try:
            chunks = [
                pa.nulls(rows, field.type) if array is None else widened(array, field.type)
                for rows, array in arrays
            ]
        except pa.ArrowException as error:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot write field '{field.name}' to Parquet as "
                f"{field.type}, which later rows need: {error}; give schema= to write_files()"
            ) from error
        return pa.chunked_array(chunks, type=field.type)
