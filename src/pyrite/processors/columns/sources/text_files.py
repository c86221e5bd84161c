"""CSV files and JSON lines as batches: what all files have in common is imposed on each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyrite.bad_records import BadRecord
from pyrite.columns.frames import as_batch
from pyrite.processors.columns.sources import csv_blocks, json_blocks
from pyrite.processors.columns.sources.file_schemas import FilesSchema, reading, with_folders
from pyrite.processors.columns.sources.filters import passed
from pyrite.processors.columns.sources.formats import BatchFormat
from pyrite.processors.files.lines import Range
from pyrite.processors.files.partitions import fields_of
from pyrite.processors.files.storage import Storage


def csv_frames(
    storage: Storage, part: Range, format: BatchFormat, known: FilesSchema
) -> Iterator[Any]:
    path, needed = part.path, known.needed
    with reading(path, format.name, known.vertex):
        names = csv_blocks.names_in(storage, path)
        if not names:
            return
        types = {field.name: field.type for field in needed}
        there = pa.schema([(name, types.get(name, pa.string())) for name in names])
        known.check(path, with_folders(there, path))
        schema = pa.schema([field for field in needed if field.name in names])
        yield from _frames(csv_blocks.tables_in(storage, path, schema), path, format, known)


def json_frames(
    storage: Storage, part: Range, format: BatchFormat, known: FilesSchema
) -> Iterator[Any]:
    path, strict = part.path, not known.has_choice
    with reading(path, format.name, known.vertex):
        folders = fields_of(path)
        schema = pa.schema([field for field in known.needed if field.name not in folders])
        tables = json_blocks.tables_in(storage, part, schema, strict=strict, goes_on=format.goes_on)
        yield from _frames(tables, path, format, known)


def _frames(
    tables: Iterator[Any], path: str, format: BatchFormat, known: FilesSchema
) -> Iterator[Any]:
    for table in tables:
        if isinstance(table, BadRecord):
            yield table
            continue
        rows = passed(format.filter, known.fitted(table, path))
        if rows.num_rows:
            yield as_batch(rows.select(known.wanted.names))
