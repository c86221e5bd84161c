"""Checks of the arguments of read_sql and write_sql."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten


def checked_table(processor: str, table: Any, needed: str) -> None:
    if not isinstance(table, str) or not table.strip():
        raise InvalidDAG(f"{processor}() needs {needed}; got {shorten(table)}")


def checked_columns(
    processor: str, columns: Any, *, argument: str = "columns"
) -> tuple[str, ...] | None:
    """None if there are none. A string is one column."""
    if columns is None:
        return None
    names = (columns,) if isinstance(columns, str) else columns
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(name, str) and name for name in names)
        or len(set(names)) < len(names)
    ):
        raise InvalidDAG(
            f"{argument} of {processor}() must be the names of columns, each once; got "
            f"{shorten(columns)}"
        )
    return tuple(names)
