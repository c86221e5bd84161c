"""Writes groups of rows to one file: Parquet, CSV or JSON lines. What a writer knows about its file
is its schema, if there was any."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pyrite.processors.files.formats import FileWriter, Written
from pyrite.processors.files.packing import NewFile
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextWriter
from pyrite.processors.loops.steps import BadItem


class ParquetFileWriter(FileWriter):
    """Each group is a row group."""

    def __init__(self, storage: Storage, folder: str, name: str, codec: str) -> None:
        self._name = name
        self._codec = codec
        self._file = storage.open(f"{folder}/{name}", "wb")
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
        self._has_rows = False

    def write(self, items: Sequence[pa.Table]) -> None:
        for table in items:
            if self._writer is None:
                self._schema = table.schema
                self._writer = pq.ParquetWriter(self._file, table.schema, compression=self._codec)
            if table.num_rows:
                self._has_rows = True
                self._writer.write_table(table, table.num_rows)

    def complete(self) -> Written:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, pa.schema([]), compression=self._codec)
        self.close()
        return Written(self._name, self._schema, is_empty=not self._has_rows)

    def is_full(self, size: int) -> bool:
        return self._file.tell() >= size

    def close(self) -> None:
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        finally:
            self._file.close()


def rewritten(storage: Storage, folder: str, name: str, schema: pa.Schema, codec: str) -> str:
    """The name of a new file with the rows of a Parquet file, with another schema that fits."""
    new = f"{name}.united"
    with (
        storage.open(f"{folder}/{new}", "wb") as target,
        pq.ParquetWriter(target, schema, compression=codec) as writer,
        storage.open(f"{folder}/{name}", "rb") as source,
        pq.ParquetFile(source) as file,
    ):
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            writer.write_table(rows.select(schema.names).cast(schema), rows.num_rows)
    return new


class _SchemaWriter(TextWriter):
    _schema: pa.Schema | None = None
    _has_rows = False

    def complete(self) -> Written:
        return replace(super().complete(), about=self._schema, is_empty=not self._has_rows)


class CsvFileWriter(_SchemaWriter):
    def write(self, items: Sequence[pa.Table]) -> None:
        for table in items:
            if self._schema is None:
                self._check(table)
                self._file.write(header_of(table.schema))
                self._schema = table.schema
            self._has_rows = self._has_rows or table.num_rows > 0
            text = io.BytesIO()
            try:
                pa_csv.write_csv(table, text, pa_csv.WriteOptions(include_header=False))
            except pa.ArrowException as error:
                raise BadItem(
                    f"vertex '{self._vertex}' cannot write rows as CSV: {error}", table
                ) from error
            self._file.write(text.getvalue())

    def _check(self, table: pa.Table) -> None:
        for field in table.schema:
            if pa.types.is_nested(field.type):
                raise BadItem(
                    f"vertex '{self._vertex}' cannot write column '{field.name}' as CSV, because "
                    f"it is {field.type}; write parquet or json, or leave it out",
                    table,
                )


def header_of(schema: pa.Schema) -> bytes:
    """The first line of a CSV file."""
    text = io.BytesIO()
    pa_csv.write_csv(pa.schema([(name, pa.string()) for name in schema.names]).empty_table(), text)
    return text.getvalue()


def with_header(storage: Storage, folder: str, name: str, schema: pa.Schema) -> str:
    """The name of a new CSV file without rows."""
    stem, dot, suffix = name.partition(".csv")
    new = f"{stem}.united{dot}{suffix}"
    file = NewFile(storage, f"{folder}/{new}")
    try:
        file.write(header_of(schema))
    finally:
        file.close()
    return new


class JsonFileWriter(_SchemaWriter):
    def write(self, items: Sequence[pa.Table]) -> None:
        for table in items:
            self._schema = table.schema
            self._has_rows = self._has_rows or table.num_rows > 0
            for batch in table.to_batches(_ROWS_AT_A_TIME):
                self._file.write(self._lines(batch))

    def _lines(self, batch: pa.RecordBatch) -> bytes:
        try:
            rows = batch.to_pylist(maps_as_pydicts="strict")
            return "".join([f"{_encode(row)}\n" for row in rows]).encode()
        except (TypeError, ValueError, KeyError, UnicodeError) as error:
            raise BadItem(
                f"vertex '{self._vertex}' cannot write rows as JSON: {error}", batch
            ) from error


def _as_text(value: Any) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"JSON has no {type(value).__name__}; cast the column to another type before")


_encode = json.JSONEncoder(ensure_ascii=False, default=_as_text).encode
_ROWS_AT_A_TIME = 4096
