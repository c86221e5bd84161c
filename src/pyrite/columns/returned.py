"""Checks what a user's function has returned as a frame."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from pyrite.columns.frames import Frame


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
    return _from_pandas(made) if format == "pandas" else made


def _from_pandas(frame: Any) -> pa.Table:
    if not all(isinstance(name, str) for name in frame.columns):
        raise Unconvertible(f"the names of its columns must be strings; got {list(frame.columns)}")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise Unconvertible("; ".join(map(str, error.args))) from error
