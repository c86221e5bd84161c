"""Rows of Parquet files, as dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyrite.errors import ProcessorError
from pyrite.processors.files.field_types import Column, folder_fields
from pyrite.processors.files.lines import Range
from pyrite.processors.files.packing import is_packed, opened
from pyrite.processors.files.parquet.row_groups import row_groups_in, sizes_of
from pyrite.processors.files.storage import Storage, is_url

_ROWS = 8192


def read_rows(
    storage: Storage, part: Range, columns: Sequence[str] | None, schema: Sequence[Column] = ()
) -> Iterator[list[dict[str, Any]]]:
    """The rows of the row groups in a part of a file, a list at a time."""
    path = part.path
    is_local = not is_url(path) and not is_packed(path)  # Arrow itself reads these, and faster
    with nullcontext(path) if is_local else opened(storage, path) as source:
        try:
            with pq.ParquetFile(source) as file:
                there = file.schema_arrow.names
                folders = {
                    name: value
                    for name, value in folder_fields(path, schema).items()
                    if name not in there and (columns is None or name in columns)
                }
                wanted = columns and [name for name in columns if name not in folders]
                names = _checked_names(wanted, there, path)
                groups = row_groups_in(part, sizes_of(file.metadata))
                for batch in file.iter_batches(_ROWS, row_groups=groups, columns=names):
                    rows = rows_of(batch, names, path)
                    yield rows if not folders else _with_folders(rows, folders, columns)
        except pa.ArrowException as error:
            raise ProcessorError(
                f"file '{path}' is not a Parquet file that can be read: {error}"
            ) from error


def rows_of(batch: pa.RecordBatch, names: Sequence[str], path: str) -> list[dict[str, Any]]:
    if not names:
        return [{} for _ in range(batch.num_rows)]
    columns = []
    for name in names:
        try:
            columns.append(values_of(batch.column(name)))
        except (ValueError, OverflowError, ArithmeticError) as error:
            raise ProcessorError(
                f"column '{name}' of Parquet file '{path}' has a value of type "
                f"{batch.column(name).type} that Python cannot hold: {error}"
            ) from error
    return _row_maker(tuple(names))(columns)


def values_of(array: pa.Array) -> list[Any]:
    """What `to_pylist` gives; but where that makes an Arrow object of each value, through NumPy,
    which is many times faster."""
    type = array.type
    values: list[Any]
    if pa.types.is_date32(type) or (pa.types.is_timestamp(type) and type.unit != "ns"):
        if not _in_range(array):
            return array.to_pylist()  # type: ignore[no-any-return]
        naive = array.cast(pa.timestamp(type.unit)) if pa.types.is_timestamp(type) else array
        values = naive.to_numpy(zero_copy_only=False).tolist()
        if not pa.types.is_date32(type) and type.tz is not None:
            zone = pa.lib.string_to_tzinfo(type.tz)
            values = [v if v is None else zone.fromutc(v.replace(tzinfo=zone)) for v in values]
        return values
    if pa.types.is_decimal128(type):
        return array.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
    return array.to_pylist()  # type: ignore[no-any-return]


def _in_range(array: pa.Array) -> bool:
    """Whether Python has all these dates: of others NumPy makes plain numbers."""
    if pa.types.is_date32(array.type):
        per_day, number = 1, array.cast(pa.int32())
    else:
        per_day = 86_400 * {"s": 1, "ms": 1_000, "us": 1_000_000}[array.type.unit]
        number = array.cast(pa.int64())
    ends = pc.min_max(number).as_py()
    first, last = -719_162 * per_day, 2_932_897 * per_day  # years 1 to 9999, from 1970-01-01
    return ends["min"] is None or (first <= ends["min"] and ends["max"] < last)


def _checked_names(columns: Sequence[str] | None, names: Sequence[str], path: str) -> list[str]:
    if columns is None:
        if len(set(names)) < len(names):
            raise ProcessorError(
                f"Parquet file '{path}' has two columns of one name: {', '.join(names)}; choose "
                "others with columns=[...]"
            )
        return list(names)
    for name in columns:
        if names.count(name) != 1:
            raise ProcessorError(
                f"Parquet file '{path}' has {'no' if name not in names else 'more than one'} "
                f"column '{name}'; its columns are {', '.join(names) or 'none at all'}"
            )
    return list(columns)


def _with_folders(
    rows: list[dict[str, Any]], folders: dict[str, Any], columns: Sequence[str] | None
) -> list[dict[str, Any]]:
    whole = [{**row, **folders} for row in rows]
    return whole if columns is None else [{name: row[name] for name in columns} for row in whole]


@lru_cache(maxsize=64)
def _row_maker(names: tuple[str, ...]) -> Callable[[Sequence[list[Any]]], list[dict[str, Any]]]:
    """A function from columns to rows: a dict with constant keys takes half the time of one made of
    pairs."""
    if len(names) > 200:  # too many variables for one display to be any faster
        return lambda columns: [dict(zip(names, row)) for row in zip(*columns)]
    variables = [f"v{index}" for index in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, variables))
    source = f"lambda columns: [{{{pairs}}} for {', '.join(variables)}, in zip(*columns)]"
    made: Callable[[Sequence[list[Any]]], list[dict[str, Any]]] = eval(source)
    return made
