"""CSV files as tables, by pyarrow. An empty field is null, unless it is quoted: then it is an empty
string. An empty line is no row, except if there is one column: then that is null. A value that does
not fit its type is an error that names the line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from pyrite.errors import ProcessorError
from pyrite.functions import shorten_text
from pyrite.processors.files.decoding import UTF_8, not_text
from pyrite.processors.files.packing import opened
from pyrite.processors.files.storage import Storage

BLOCK = 1 << 22
"""About how many bytes of a file become a table, and by how many the types are inferred."""
_BAD_VALUE = re.compile(r"In CSV column #(\d+): (.*)", re.DOTALL)
_QUOTED = re.compile(r"'(.*)'", re.DOTALL)
_BAD_ROW = re.compile(r"Expected (\d+) columns, got (\d+)")


def names_in(storage: Storage, path: str) -> list[str]:
    """The names of the columns: the first line that is not empty; none if there is no such line."""
    with opened(storage, path) as file:
        return next((row for _, row in _rows(file) if row), [])


def inferred(storage: Storage, path: str) -> pa.Schema | None:
    """The columns of a file, with types that fit its first rows; None if it has no rows."""
    first = next(tables_in(storage, path, None), None)
    if first is None:
        return None
    not_utf_8 = [field.name for field in first.schema if pa.types.is_binary(field.type)]
    if not_utf_8:
        raise _not_text(storage, path)
    fields = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in first.schema]
    return pa.schema(fields)


def tables_in(storage: Storage, path: str, schema: pa.Schema | None) -> Iterator[pa.Table]:
    """The rows of a file, with the columns of a schema, or with all and inferred types."""
    names = names_in(storage, path)
    if not names:
        return
    convert = pa_csv.ConvertOptions(
        column_types=schema,
        include_columns=None if schema is None else schema.names,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    done = 0
    with opened(storage, path) as file:
        try:
            reader = pa_csv.open_csv(
                file,
                read_options=pa_csv.ReadOptions(block_size=BLOCK),
                parse_options=pa_csv.ParseOptions(
                    newlines_in_values=True, ignore_empty_lines=len(names) > 1
                ),
                convert_options=convert,
            )
            for batch in reader:
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])
                    done += batch.num_rows
        except pa.ArrowInvalid as error:
            raise _explained(error, storage, path, names, done) from error


def _rows(file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file, also the names and empty ones, each with the number of its last line."""
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text)
        for row in reader:
            yield reader.line_num, row


def _explained(
    error: Exception, storage: Storage, path: str, names: list[str], done: int
) -> ProcessorError:
    """What is wrong, and in which line, if it is found. `done` rows were right."""
    text, value = str(error), _BAD_VALUE.match(str(error))
    if "invalid UTF8" in text:
        return _not_text(storage, path)
    column, why = (int(value[1]), value[2]) if value else (-1, text)
    quoted = _QUOTED.search(why)
    with opened(storage, path) as file:
        rows = (each for each in _rows(file) if each[1] or len(names) == 1)
        for line, row in islice(rows, done + 1, None):
            if value is None and _BAD_ROW.search(text) and len(row) != len(names):
                return ProcessorError(
                    f"line {line} of '{path}' has {len(row)} fields, and the first line has "
                    f"{len(names)}: {shorten_text(','.join(row), 100)}"
                )
            if value and quoted and row[column : column + 1] == [quoted[1]]:
                return ProcessorError(f"line {line} of '{path}': column '{names[column]}': {why}")
    where = f"column '{names[column]}' of '{path}'" if value else f"file '{path}'"
    return ProcessorError(f"{where}: {why}")


def _not_text(storage: Storage, path: str) -> ProcessorError:
    with opened(storage, path) as file:
        return not_text(file, path, UTF_8)
