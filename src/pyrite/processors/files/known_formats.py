"""The formats by their names, and checks of the options that only some of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.csv_rows import Csv
from pyrite.processors.files.csv_types import Column, checked_csv_schema
from pyrite.processors.files.decoding import UTF_8, checked_encoding
from pyrite.processors.files.formats import Format
from pyrite.processors.files.json_lines import JsonLines
from pyrite.processors.files.parquet import Parquet, checked_schema
from pyrite.processors.files.text import Text

FORMATS: dict[str, Format] = {
    "text": Text(),
    "csv": Csv(),
    "jsonl": JsonLines(),
    "json": JsonLines(),
    "parquet": Parquet(),
}


def format_to_read(
    name: str,
    *,
    columns: Sequence[str] | None = None,
    schema: Any = None,
    encoding: str | None = None,
) -> Format:
    """Raises InvalidDAG."""
    format = _format("read_files", name)
    chosen = None if columns is None else _checked_columns(columns)
    if schema is not None and not isinstance(format, Csv):
        raise InvalidDAG(
            f"schema of read_files() is for csv files only, and format is '{name}'; leave schema "
            "out"
        )
    if isinstance(format, Parquet):
        if encoding is not None:
            raise InvalidDAG(
                "encoding of read_files() is for files of text, and format is 'parquet'; leave "
                "encoding out"
            )
        return Parquet(columns=chosen)
    code = UTF_8 if encoding is None else checked_encoding(encoding)
    if isinstance(format, Csv):
        return Csv(code, chosen, None if schema is None else _csv_schema(schema, chosen))
    if isinstance(format, JsonLines):
        return JsonLines(code, chosen)
    if chosen is not None:
        raise InvalidDAG(
            "columns of read_files() can be chosen in csv, jsonl and parquet files, and format is "
            f"'{name}'; leave columns out"
        )
    return Text(code)


def format_to_write(name: str, schema: Any) -> Format:
    """Raises InvalidDAG."""
    format = _format("write_files", name)
    if schema is None:
        return format
    if not isinstance(format, Parquet):
        raise InvalidDAG(
            f"schema of write_files() is for parquet files only, and format is '{name}'; leave "
            "schema out"
        )
    return Parquet(schema=checked_schema(schema))


def _format(processor: str, name: str) -> Format:
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidDAG(
            f"format of {processor}() must be one of {', '.join(FORMATS)}; got {shorten(name)}"
        )
    return FORMATS[name]


def _checked_columns(columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InvalidDAG(
            f"columns of read_files() must be a list of at least one name; got {shorten(columns)}"
        )
    for name in columns:
        if not isinstance(name, str):
            raise InvalidDAG(f"columns of read_files() must be strings; got {shorten(name)}")
    if len(set(columns)) < len(columns):
        raise InvalidDAG(f"columns of read_files() names a column twice: {', '.join(columns)}")
    return tuple(columns)


def _csv_schema(schema: Any, columns: Sequence[str] | None) -> tuple[Column, ...]:
    checked = checked_csv_schema(schema)
    for name in columns or ():
        if name not in schema:
            raise InvalidDAG(
                f"columns of read_files() names '{name}', which is not in schema; add it there"
            )
    return checked
