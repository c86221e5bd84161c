"""Writes rows to a Parquet file, in row groups of bounded size, with a schema that is given or that
fits the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.formats import FileWriter, Written, check_row
from pyrite.processors.files.parquet.fitting import check_fits
from pyrite.processors.files.parquet.kinds import (
    NO_FIELDS,
    CannotStore,
    CannotUnite,
    Fields,
    arrow_schema,
    fields_and_columns,
    fields_of,
    unite,
)
from pyrite.processors.files.parquet.pieces import (
    ROWS_PER_GROUP,
    Piece,
    add_examples,
    as_one_piece,
    cannot_unite,
    field_name,
    widened,
)
from pyrite.processors.files.storage import Storage
from pyrite.processors.loops.steps import BadItem

ROWS_AT_A_TIME = 1024
"""How many rows become arrays at a time, at most."""
BYTES_AT_A_TIME = 1 << 24
"""About how many bytes these rows may have."""
_FIRST_ROWS = 32
_NEARLY = 0.9
"""A file that has this share of its size is full: the rest is not worth a row group."""

pa.array([0])  # the first one imports pandas: not in a cooperative call, which that would hold up


class ParquetWriter(FileWriter):
    """Rows are gathered to row groups. When the rows of a group need another schema than those
    before, a new piece begins; in the end all pieces become one."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        vertex: str,
        schema: pa.Schema | None,
        codec: str,
        group_bytes: int,
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._name = name
        self._vertex = vertex
        self._given = schema
        self._codec = codec
        self._group_bytes = group_bytes
        self._fields = NO_FIELDS
        self._examples: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []
        self._rows_at_a_time = min(_FIRST_ROWS, ROWS_AT_A_TIME)
        self._blocks: list[tuple[int, dict[str, pa.Array]]] = []
        self._rows_in_blocks = 0
        self._bytes_in_blocks = 0
        self._pieces: list[Piece] = []
        self._bytes_before = 0
        self._bytes_taken = 0
        self._file = storage.open(f"{folder}/{name}", "wb")
        self._writer: pq.ParquetWriter | None = None

    def write(self, items: list[Any]) -> None:
        for item in items if set(map(type, items)) != {dict} else ():
            check_row(item, self._vertex)
        self._rows += items
        if len(self._rows) >= self._rows_at_a_time:
            self._take_rows()

    def complete(self) -> Written:
        self._take_rows()
        if self._blocks or self._writer is None:
            self._write_group()
        self.close()
        if self._given is not None:
            return Written(self._name)
        piece = as_one_piece(self._storage, self._folder, self._vertex, self._pieces, self._codec)
        return Written(piece.name, replace(piece, name=""))

    def is_full(self, size: int) -> bool:
        """Rows that are held back are taken to be packed as well as those before them."""
        self._take_rows()
        written = self._bytes_written()
        ratio = written / self._bytes_taken if self._bytes_taken else 1.0
        if not self._blocks or written + self._bytes_in_blocks * ratio < size:
            return written >= size
        self._write_group()
        return self._bytes_written() >= size * _NEARLY

    def close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._writer = None
            self._file.close()

    def _bytes_written(self) -> int:
        return self._bytes_before + (0 if self._file.closed else self._file.tell())

    def _take_rows(self) -> None:
        """Turns the rows that have gathered into arrays."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            if self._given is None:
                found, columns = fields_and_columns(rows)
                fields = self._united(found, rows)
                arrays = _arrays(columns, arrow_schema(fields))
            else:
                fields = NO_FIELDS
                arrays = self._given_arrays(rows, self._given)
        except (CannotUnite, CannotStore) as error:
            self._raise_for_item(rows, error)
        self._fields = fields
        self._blocks.append((len(rows), arrays))
        self._rows_in_blocks += len(rows)
        size = sum(array.nbytes for array in arrays.values())
        self._bytes_in_blocks += size
        fitting = len(rows) * BYTES_AT_A_TIME // max(size, 1)
        self._rows_at_a_time = max(1, min(fitting, 4 * self._rows_at_a_time, ROWS_AT_A_TIME))
        if arrays and (
            self._rows_in_blocks >= ROWS_PER_GROUP or self._bytes_in_blocks >= self._group_bytes
        ):
            self._write_group()

    def _united(self, found: Fields, rows: Sequence[dict[str, Any]]) -> Fields:
        """The fields that fit these rows and all before. Raises CannotUnite."""
        if found == self._fields:
            return found
        fields: Fields = unite(self._fields, found)
        add_examples(self._examples, self._fields, fields, rows)
        return fields

    def _given_arrays(
        self, rows: Sequence[dict[str, Any]], schema: pa.Schema
    ) -> dict[str, pa.Array]:
        unknown = set().union(*set(map(tuple, rows))) - set(schema.names)
        if unknown:
            raise CannotStore((min(map(str, unknown)),), "the schema has no such field")
        columns = {name: [row.get(name) for row in rows] for name in schema.names}
        for field in schema:
            check_fits(columns[field.name], field, (field.name,))
        return _arrays(columns, schema)

    def _raise_for_item(self, rows: Sequence[dict[str, Any]], error: Exception) -> NoReturn:
        """Finds the item that could not be taken."""
        fields, examples = self._fields, dict(self._examples)
        for row in rows:
            try:
                if self._given is not None:
                    self._given_arrays([row], self._given)
                    continue
                before, fields = fields, unite(fields, fields_of([row]))
                add_examples(examples, before, fields, [row])
            except CannotUnite as found_two:
                text = cannot_unite(self._vertex, found_two, examples[found_two.path[0]])
                raise BadItem(f"{text}: {shorten(row)}", row) from None
            except CannotStore as why:
                self._raise_for_row(row, why)
        schema = arrow_schema(fields)
        for row in rows if self._given is None else ():
            try:
                _arrays({name: [value] for name, value in row.items()}, schema)
            except CannotStore as why:
                self._raise_for_row(row, why)
        raise error

    def _raise_for_row(self, row: dict[str, Any], why: CannotStore) -> NoReturn:
        field = f"field '{field_name(why.path)}' of " if why.path else ""
        raise BadItem(
            f"vertex '{self._vertex}' cannot write {field}an item to Parquet: {why}: "
            f"{shorten(row)}",
            row,
        ) from why

    def _write_group(self) -> None:
        fields = self._fields
        schema = self._given if self._given is not None else arrow_schema(fields)
        self._begin_piece(schema, fields)
        blocks, self._blocks = self._blocks, []
        self._bytes_taken += self._bytes_in_blocks
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
            self._bytes_before = self._bytes_written()
            self.close()
            name = f"{self._name}.{len(self._pieces)}"
            self._file = self._storage.open(f"{self._folder}/{name}", "wb")
        self._writer = pq.ParquetWriter(self._file, schema, compression=self._codec)
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


def _arrays(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> dict[str, pa.Array]:
    """Raises CannotStore."""
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values, type=schema.field(name).type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise CannotStore((name,), str(error)) from error
    return arrays
