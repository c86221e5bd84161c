"""The formats by their names, and checks of the options that only some of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.csv_rows import Csv
from pyrite.processors.files.formats import Format
from pyrite.processors.files.json_lines import JsonLines
from pyrite.processors.files.parquet import Parquet, checked_columns, checked_schema
from pyrite.processors.files.text import Text

FORMATS: dict[str, Format] = {
    "text": Text(),
    "csv": Csv(),
    "jsonl": JsonLines(),
    "json": JsonLines(),
    "parquet": Parquet(),
}


def format_to_read(name: str, columns: Sequence[str] | None) -> Format:
    """Raises InvalidDAG."""
    format = _format("read_files", name)
    if columns is None:
        return format
    if not isinstance(format, Parquet):
        raise InvalidDAG(
            f"columns of read_files() can be chosen in parquet files only, and format is "
            f"'{name}'; leave columns out, and choose fields with map()"
        )
    return Parquet(columns=checked_columns(columns))


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
