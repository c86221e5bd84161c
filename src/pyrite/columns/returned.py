"""Checks what a user's function has returned as a frame."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyrite.columns.frames import Frame

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Unconvertible(Exception):
    """A frame that cannot become a batch. Says which column, and why."""


def checked_frame(made: Any, format: str) -> Frame:
    """What a function for frames of a format has returned, as a frame of Arrow or Polars. Raises
    TypeError if it is neither of that format nor of Arrow."""
    if isinstance(made, (pa.RecordBatch, pa.Table)):
        return made
    library = sys.modules.get(format)
    if library is None or format == "arrow" or not isinstance(made, library.DataFrame):
        raise TypeError
    if format == "pandas":
        return _from_pandas(made)
    _check_polars(made)
    return made


def _check_polars(frame: pl.DataFrame) -> None:
    for name, kind in frame.schema.items():
        if not _is_in_arrow(kind):
            raise Unconvertible(
                f"column '{name}' is {kind}, which is not a type of Arrow; cast it to another"
            )


@lru_cache
def _is_in_arrow(kind: pl.DataType) -> bool:
    import polars as pl

    if kind == pl.Object:  # as Arrow it would be addresses in memory
        return False
    try:
        pl.Series([], dtype=kind).to_arrow(compat_level=pl.CompatLevel.oldest())
    except pa.ArrowException:
        return False
    return True


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    """Levels of the index that have names become the last columns, and the others are dropped."""
    levels = frame.index.names
    _check_names([*frame.columns, *(name for name in levels if name is not None)])
    unnamed = [number for number, name in enumerate(levels) if name is None]
    has_named = len(unnamed) < len(levels)
    if unnamed and has_named:
        frame = frame.reset_index(level=unnamed, drop=True)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=has_named)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise Unconvertible("; ".join(map(str, error.args))) from error
    return table.replace_schema_metadata(None)


def _check_names(names: Sequence[Any]) -> None:
    if not all(isinstance(name, str) for name in names):
        raise Unconvertible(f"the names of its columns must be strings; got {names}")
    for name in names:
        if names.count(name) > 1:
            raise Unconvertible(f"more than one column, or level of its index, is named '{name}'")
