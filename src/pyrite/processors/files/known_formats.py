"""The formats by their names, and checks of the options that only some of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.csv_rows import Csv
from pyrite.processors.files.decoding import UTF_8, checked_encoding
from pyrite.processors.files.field_types import checked_read_schema
from pyrite.processors.files.formats import Format
from pyrite.processors.files.json_lines import JsonLines
from pyrite.processors.files.packing import SUFFIXES
from pyrite.processors.files.parquet import Parquet, checked_codec, checked_schema
from pyrite.processors.files.text import Text, TextFormat

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
    chosen = checked_columns("read_files", columns)
    fields = () if schema is None else checked_read_schema(schema)
    if isinstance(format, Parquet):
        if encoding is not None:
            raise InvalidDAG(
                "encoding of read_files() is for files of text, and format is 'parquet'; leave "
                "encoding out"
            )
        return Parquet(columns=chosen, folders=fields)
    code = UTF_8 if encoding is None else checked_encoding(encoding)
    if isinstance(format, Csv):
        for column in chosen or () if fields else ():
            if column not in schema:
                raise InvalidDAG(
                    f"columns of read_files() names '{column}', which is not in schema; add it "
                    "there"
                )
        return Csv(code, columns=chosen, schema=fields or None)
    if isinstance(format, JsonLines):
        return JsonLines(code, columns=chosen, folders=fields)
    for option, given in (("columns", chosen), ("schema", fields)):
        if given:
            raise InvalidDAG(
                f"{option} of read_files() is for csv, jsonl and parquet files, and format is "
                f"'{name}'; leave {option} out"
            )
    return Text(code)


def format_to_write(name: str, *, schema: Any = None, compression: str | None = None) -> Format:
    """Raises InvalidDAG."""
    format = _format("write_files", name)
    if isinstance(format, Parquet):
        codec = checked_codec("write_files", compression)
        return Parquet(schema=None if schema is None else checked_schema(schema), codec=codec)
    if schema is not None:
        raise InvalidDAG(
            f"schema of write_files() is for parquet files only, and format is '{name}'; leave "
            "schema out"
        )
    assert isinstance(format, TextFormat)
    return replace(format, compression=checked_packing("write_files", name, compression))


def checked_packing(processor: str, format: str, compression: Any) -> str | None:
    """How files of text are packed. Raises InvalidDAG."""
    if compression is not None and compression not in SUFFIXES:
        raise InvalidDAG(
            f"compression of {processor}() must be one of {', '.join(SUFFIXES)} if format is "
            f"'{format}'; got {shorten(compression)}"
        )
    return None if compression is None else str(compression)


def _format(processor: str, name: str) -> Format:
    if not isinstance(name, str) or name not in FORMATS:
        raise InvalidDAG(
            f"format of {processor}() must be one of {', '.join(FORMATS)}; got {shorten(name)}"
        )
    return FORMATS[name]


def checked_columns(processor: str, columns: Any) -> tuple[str, ...] | None:
    """The columns to read; None for all. Raises InvalidDAG."""
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InvalidDAG(
            f"columns of {processor}() must be a list of at least one name; got {shorten(columns)}"
        )
    for name in columns:
        if not isinstance(name, str):
            raise InvalidDAG(f"columns of {processor}() must be strings; got {shorten(name)}")
    if len(set(columns)) < len(columns):
        raise InvalidDAG(f"columns of {processor}() names a column twice: {', '.join(columns)}")
    return tuple(columns)
