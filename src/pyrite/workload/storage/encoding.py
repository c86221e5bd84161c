"""Encodes the results of jobs as bytes and decodes them: with pickle, as Parquet for tables, or as
the paths of files."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import cloudpickle

from pyrite.functions import message_of, shorten
from pyrite.workload.input.fingerprints import digest
from pyrite.workload.input.jobs.elements import Elements
from pyrite.workload.storage.meanings import meaning_of, pickle_of, with_meaning
from pyrite.workload.storage.parts import all_parts, joined
from pyrite.workload.storage.result_files import (
    Unstorable,
    changed,
    files_of_result,
    with_whole_paths,
)


class Kind(IntEnum):
    NOTHING = 0  # None
    PICKLE = 1
    PANDAS = 2  # this and the next two as Parquet
    POLARS = 3
    ARROW = 4
    PATHS = 5  # of files and folders, alone or in lists, tuples, sets, dicts and dataclasses
    ELEMENTS = 6  # of a list, each encoded separately
    MEANT = 7  # a pickle with a digest of what it means

    @property
    def suffix(self) -> str:
        return ".parquet" if self in (Kind.PANDAS, Kind.POLARS, Kind.ARROW) else ".pickle"


@dataclass(frozen=True, slots=True)
class Encoded:
    kind: Kind
    data: bytes

    @property
    def digest(self) -> bytes:
        """What downstream jobs see of the result. Of its files, only the contents count."""
        if self.kind is Kind.MEANT:
            return meaning_of(self.data)
        if self.kind is not Kind.PATHS:
            return digest(self.data)
        value, files = pickle.loads(self.data)
        return digest(value, *[content for _, (_, content) in sorted(files.items())])


NOTHING = Encoded(Kind.NOTHING, b"")

_SIMPLE = frozenset((int, float, str, bytes, bool))


def identity(kind: int, data: bytes) -> bytes:
    return Encoded(Kind(kind), data).digest


def encode(value: Any, *, folder: str = "") -> Encoded:
    """Encodes a result. The paths in it are relative to `folder`. Raises Unstorable if it
    cannot be encoded."""
    if value is None:
        return NOTHING
    if type(value) is Elements:
        return gathered([encode(element, folder=folder) for element in value])
    table = _encode_table(value)
    if table is not None:
        return table
    try:
        data = _pickled(value)
    except Exception as error:
        raise Unstorable(
            f"its result, {shorten(value)} of type "
            f"{type(value).__module__}.{type(value).__qualname__}, cannot be pickled "
            f"({message_of(error)}); return plain data, or write it to a file and return its path"
        ) from None
    files = (
        files_of_result(value, folder) if b"pathlib" in data else None
    )  # most results need no search
    if files:
        data = pickle.dumps((with_whole_paths(value, folder), files), protocol=5)
        return Encoded(Kind.PATHS, data)
    meant = None if type(value) in _SIMPLE else with_meaning(value, data)
    return Encoded(Kind.PICKLE, data) if meant is None else Encoded(Kind.MEANT, meant)


def gathered(results: Sequence[Encoded]) -> Encoded:
    """Several results as one, which is a list."""
    data = joined([(result.kind, result.data) for result in results], identity)
    return Encoded(Kind.ELEMENTS, data)


def _parts(encoded: Encoded) -> Iterator[Encoded]:
    return (Encoded(Kind(kind), data) for kind, data in all_parts(encoded.data))


def decode(encoded: Encoded) -> Any:
    kind, data = encoded.kind, encoded.data
    if kind is Kind.NOTHING:
        return None
    if kind is Kind.PICKLE:
        return pickle.loads(data)
    if kind is Kind.MEANT:
        return pickle.loads(pickle_of(data))
    if kind is Kind.ELEMENTS:
        return [decode(part) for part in _parts(encoded)]
    if kind is Kind.PATHS:
        return pickle.loads(pickle.loads(data)[0])
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(data))
    if kind is Kind.PANDAS:
        return table.to_pandas()
    if kind is Kind.POLARS:
        import polars

        return polars.read_parquet(io.BytesIO(data))
    return table


def changed_paths(encoded: Encoded) -> list[str]:
    """The files and folders of a result that have changed since the job ended, or are gone."""
    if encoded.kind is Kind.ELEMENTS:
        return [path for part in _parts(encoded) for path in changed_paths(part)]
    if encoded.kind is not Kind.PATHS:
        return []
    return changed(pickle.loads(encoded.data)[1])


def _pickled(value: Any) -> bytes:
    """Uses pickle, which is faster, for simple types. Other values may contain classes or functions
    of the user's main module, which only cloudpickle can pickle by value."""
    if type(value) in _SIMPLE:
        return pickle.dumps(value, protocol=5)
    data: bytes = cloudpickle.dumps(value, protocol=5)
    return data


def _encode_table(value: Any) -> Encoded | None:
    """Encodes a table as Parquet; None if the value is not a table, or if reading the Parquet file
    would not give an equal table."""
    library = type(value).__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow") or library not in sys.modules:
        return None
    name = type(value).__name__
    out = io.BytesIO()
    try:
        if library == "pyarrow" and name == "Table":
            import pyarrow.parquet

            pyarrow.parquet.write_table(value, out)
            if pyarrow.parquet.read_schema(io.BytesIO(out.getvalue())) != value.schema:
                return None
            return Encoded(Kind.ARROW, out.getvalue())
        if library == "polars" and name == "DataFrame":
            import polars

            value.write_parquet(out)
            if polars.read_parquet_schema(io.BytesIO(out.getvalue())) != dict(value.schema):
                return None
            return Encoded(Kind.POLARS, out.getvalue())
        if library == "pandas" and name == "DataFrame" and _keeps_as_parquet(value):
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pandas(value), out)
            return Encoded(Kind.PANDAS, out.getvalue())
    except Exception:  # the table has a type that Parquet does not support; it will be pickled
        return None
    return None


def _keeps_as_parquet(frame: Any) -> bool:
    """Whether a pandas DataFrame is the same after writing and reading it as Parquet: the columns
    have unique str names and contain numbers, times or strings."""
    import pandas as pd

    if (
        type(frame.index) not in (pd.RangeIndex, pd.Index)
        or frame.attrs
        or frame.index.dtype.kind not in "iufO"
    ):
        return False
    columns = [*frame.columns]
    if (
        not all(type(name) is str for name in columns)
        or len(set(columns)) < len(columns)
        or frame.columns.name is not None
    ):
        return False
    parts = [frame[name] for name in columns] + (
        [frame.index.to_series()] if type(frame.index) is pd.Index else []
    )
    return all(
        part.dtype.kind in "iufb"
        or str(part.dtype) == "datetime64[ns]"
        or (part.dtype == object and pd.api.types.infer_dtype(part, skipna=False) == "string")
        for part in parts
    )
