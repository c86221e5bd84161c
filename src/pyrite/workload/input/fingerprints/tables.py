"""Arrays and tables in parts. Their data is hashed where it lies in memory, in pieces: neither as
text nor as a copy. What a library caches in a table does not count."""

from __future__ import annotations

import array
import sys
from hashlib import sha256
from typing import Any

from pyrite.workload.input.fingerprints.node import Node

PIECE_BYTES = 1 << 22
_PIECE_ROWS = 1 << 16
_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")


def of_table(value: Any) -> Node | None:
    """None if the value is neither an array nor a table."""
    if isinstance(value, (bytearray, memoryview, array.array)):
        kind = "" if isinstance(value, bytearray) else memoryview(value).format
        return Node(f"{type(value).__name__} {kind} {_hex_of_buffer(memoryview(value))}")
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LIBRARIES and library in sys.modules:
            return _OF[library](value)
    return None


def _hex_of_buffer(view: memoryview) -> str:
    return sha256(view if view.contiguous else view.tobytes()).hexdigest()


def _of_numpy(value: Any) -> Node | None:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return None
    if isinstance(value, np.ma.MaskedArray):
        return Node("masked array", [value.mask, value.filled(), value.fill_value])
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    what = f"array {name} {value.shape} {value.dtype.descr if value.dtype.names else value.dtype}"
    if value.dtype.hasobject:
        return Node(what, [value.ravel().tolist()])
    hashed = sha256(what.encode())
    _update(hashed, np.asarray(value))
    is_plain = type(value) is np.ndarray
    return Node(
        hashed.digest(), [] if is_plain else [type(value), getattr(value, "__dict__", None)]
    )


def _update(hashed: Any, values: Any) -> None:
    import numpy as np

    if values.flags.c_contiguous:
        if values.size:
            hashed.update(values.reshape(-1).view(np.uint8))
        return
    rows = max(1, PIECE_BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), rows):
        piece = values[start : start + rows]
        if piece.nbytes > PIECE_BYTES and piece.ndim > 1:
            _update(hashed, piece[0])
        else:
            hashed.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8))


def _of_pandas(value: Any) -> Node | None:
    import pandas as pd

    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, pd.DataFrame):
        about = [value.columns, value.index, *_about(value)]
        return Node(kind, [*about, *_of_columns(value)])
    if isinstance(value, pd.Series):
        return Node(kind, [value.name, value.index, *_about(value), value.array])
    if isinstance(value, pd.RangeIndex):
        return Node(kind, [value.start, value.stop, value.step, value.name])
    if isinstance(value, pd.MultiIndex):
        return Node(kind, [list(value.levels), list(value.codes), list(value.names)])
    if isinstance(value, pd.Index):
        return Node(kind, [value.name, getattr(value, "freq", None), value.array])
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return _of_pandas_array(value)
    return None


def _about(value: Any) -> list[Any]:
    """What a DataFrame or a Series is besides its values, and the attributes of a subclass."""
    more = [getattr(value, name, None) for name in value._metadata]
    return [value.attrs, value.flags.allows_duplicate_labels, type(value), *more]


def _of_columns(frame: Any) -> list[Any]:
    """The columns, or one digest of them all if they are of one NumPy type. It does not depend on
    how pandas keeps them: as one array or as several."""
    import numpy as np

    kinds = set(frame.dtypes)
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if not isinstance(kind, np.dtype) or kind.hasobject:
        return [frame.iloc[:, n].array for n in range(frame.shape[1])]
    hashed = sha256(f"{kind} {frame.shape}".encode())
    rows = max(1, PIECE_BYTES // (kind.itemsize * frame.shape[1]))
    for start in range(0, len(frame), rows):
        _update(hashed, frame.iloc[start : start + rows].to_numpy())
    return [hashed.digest()]


def _of_pandas_array(values: Any) -> Node:
    import numpy as np
    import pandas as pd

    what = f"{type(values).__qualname__} {values.dtype}"
    if isinstance(values, pd.Categorical):
        return Node(what, [values.categories, bool(values.ordered), values.codes])
    if isinstance(values, pd.arrays.ArrowExtensionArray):
        return Node(what, [values.__arrow_array__()])
    if hasattr(values, "asi8"):  # times, spans and periods
        return Node(what, [values.asi8])
    if hasattr(values, "_mask") and hasattr(values, "_data"):
        return Node(what, [values._mask, np.where(values._mask, values._data.dtype.type(), values)])
    return Node(what, [values.to_numpy()])


def _of_polars(value: Any) -> Node | None:
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return Node("polars.DataFrame", value.get_columns())
    if isinstance(value, pl.Series):
        if value.dtype == pl.Object:
            return Node("polars.Series", [value.name, value.to_list()])
        return Node("polars.Series", [value.name, str(value.dtype), value.to_arrow()])
    return None


def _of_arrow(value: Any) -> Node | None:
    import pyarrow as pa

    if isinstance(value, (pa.Table, pa.RecordBatch)):
        schema = value.schema.serialize().to_pybytes()
        return Node("arrow table", [schema, *value.columns])
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return Node(_digest_of_column(value))
    return None


class _Hashing:
    """A file that hashes what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.hashed = sha256()

    def write(self, data: Any) -> int:
        self.hashed.update(data)
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _digest_of_column(column: Any) -> bytes:
    """The digest of the values of a column. How it is cut into chunks does not count."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # its values are too many for one array
        column = pa.array(column.to_pylist(), column.type)
    file = _Hashing()
    schema = pa.schema([pa.field("", column.type)])
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), schema) as out:
        for start in range(0, len(column), _PIECE_ROWS):
            piece = column.slice(start, _PIECE_ROWS)
            out.write_batch(pa.record_batch([piece], schema=schema))
    return file.hashed.digest()


_OF = {"numpy": _of_numpy, "pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}
