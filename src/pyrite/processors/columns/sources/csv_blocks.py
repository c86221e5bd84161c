"""CSV files as tables, by pyarrow. An empty field is null, unless it is quoted: then it is an empty
string. An empty line is no row, except if there is one column: then that is null. A value that does
not fit its type is an error that names the line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import dropwhile, islice
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
_ADVICE = "give the column a type that all its values have with schema="
_BAD_ROW = re.compile(r"Expected (\d+) columns, got (\d+)")


def names_in(storage: Storage, path: str) -> list[str]:
    """The names of the columns: the first line that is not empty; none if there is no such line."""
    return _heading(storage, path)[1]


def _heading(storage: Storage, path: str) -> tuple[int, list[str]]:
    """How many lines are empty before the names of the columns, and these."""
    with opened(storage, path) as file:
        return next(((at, row) for at, (_, row) in enumerate(_rows(file)) if row), (0, []))


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
    empty, names = _heading(storage, path)
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
                read_options=pa_csv.ReadOptions(
                    block_size=BLOCK, skip_rows=empty if len(names) == 1 else 0
                ),
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
        from_names = dropwhile(lambda each: not each[1], _rows(file))
        rows = (each for each in from_names if each[1] or len(names) == 1)
        for line, row in islice(rows, done + 1, None):
            if value is None and _BAD_ROW.search(text) and len(row) != len(names):
                return ProcessorError(
                    f"line {line} of '{path}' has {len(row)} fields, and the first line has "
                    f"{len(names)}: {shorten_text(','.join(row), 100)}"
                )
            if value and quoted and row[column : column + 1] == [quoted[1]]:
                return ProcessorError(
                    f"line {line} of '{path}': column '{names[column]}': {why}; {_ADVICE}"
                )
    if value:
        return ProcessorError(f"column '{names[column]}' of '{path}': {why}; {_ADVICE}")
    return ProcessorError(f"file '{path}': {why}")


def _not_text(storage: Storage, path: str) -> ProcessorError:
    with opened(storage, path) as file:
        return not_text(file, path, UTF_8, "read_batches() reads only UTF-8, so convert the file")
