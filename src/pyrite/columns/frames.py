"""Frames: tables in the formats that vertices work with (Arrow, Polars, pandas), and how each
becomes another. What crosses an edge is always a `pyarrow.RecordBatch`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns import polars_types
from pyrite.columns.dictionaries import without_null_values
from pyrite.columns.packing.splitting import merged

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    Frame: TypeAlias = pa.RecordBatch | pa.Table | pl.DataFrame
else:
    Frame: TypeAlias = Any

SMALL: Final = 64 << 10
"""What a slice keeps of a batch does not matter below this."""
BATCH_BYTES: Final = 8 << 20
"""The most bytes of a batch that crosses an edge, unless one row is larger."""


def as_batch(frame: Frame) -> pa.RecordBatch:
    """One batch with all rows. Types that pyarrow's kernels cannot take rows of become others: see
    `door_type`."""
    if type(frame) is pa.RecordBatch:
        return _through_door(frame)
    table = _through_door(as_table(frame))
    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:  # more than 2 GB of strings
        batches = table.cast(_with_types(table.schema, _large)).combine_chunks().to_batches()
    return batches[0] if batches else empty_batch(table.schema)


def as_table(frame: Frame) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    import polars as pl

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def as_polars(frame: Frame) -> pl.DataFrame:
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    polars_types.check(frame.schema)
    made = pl.from_arrow(frame)
    assert isinstance(made, pl.DataFrame)
    return made


def is_arrow(frame: Frame) -> bool:
    return isinstance(frame, (pa.RecordBatch, pa.Table))


def as_pandas(frame: Frame) -> pd.DataFrame:
    """Always by Arrow: Polars would make timestamps of dates."""
    return as_batch(frame).to_pandas()


def is_frame(item: Any) -> bool:
    """Whether something is a batch, a table of Arrow, or a DataFrame of Polars."""
    polars = sys.modules.get("polars")
    return is_arrow(item) or (polars is not None and isinstance(item, polars.DataFrame))


def narrowed(frame: Frame, columns: Sequence[str]) -> Frame:
    """The frame with only these columns, if it has them all."""
    names = frame.schema.names if isinstance(frame, pa.RecordBatch | pa.Table) else frame.columns
    return frame.select(list(columns)) if set(columns) <= set(names) else frame


def without_rows(frame: Frame) -> Frame:
    """A frame with the same columns and no rows."""
    return frame[:0]


def compact(frame: Frame) -> Frame:
    """The frame; a copy if it is a small slice of something large, which it would keep."""
    if not isinstance(frame, pa.RecordBatch):
        return frame
    whole = frame.get_total_buffer_size()
    if whole < SMALL or whole < 2 * frame.nbytes:
        return frame
    return merged([frame])


def rows_in(frame: Frame) -> int:
    rows: int = frame.num_rows if isinstance(frame, pa.RecordBatch | pa.Table) else frame.height
    return rows


def bytes_in(frame: Frame) -> int:
    if isinstance(frame, pa.RecordBatch | pa.Table):
        return int(frame.nbytes)
    return int(frame.estimated_size())


def batches_of(frame: Frame, most_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about at most that many bytes, without a copy if the frame's chunks
    are large enough. No batch is empty, unless the frame is: then there is one empty batch, so that
    the schema is not lost."""
    if rows_in(frame) == 0:
        yield as_batch(frame)
        return
    table = _through_door(as_table(frame))
    chunks = table.to_batches()
    if len(chunks) > 4 * (table.nbytes // most_bytes + 1):  # many small chunks
        chunks = table.combine_chunks().to_batches()
    for chunk in chunks:
        size = max(chunk.nbytes, 1)
        pieces = -(-size // most_bytes)
        rows = max(1, -(-chunk.num_rows // pieces))
        for start in range(0, chunk.num_rows, rows):
            yield chunk.slice(start, rows)


def door_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column has in batches. `string_view` and `binary_view`, of which pyarrow
    cannot take rows, become `large_string` and `large_binary`, also inside other types; run-end
    encoded columns become plain ones."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_run_end_encoded(kind):
        return door_type(kind.value_type)
    return _inside(kind, door_type)


def _inside(kind: pa.DataType, changed: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type whose inner types are changed."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([field.with_type(changed(field.type)) for field in kind])
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, changed(kind.value_type), kind.ordered)
    if types.is_map(kind):
        item = kind.item_field.with_type(changed(kind.item_type))
        return pa.map_(changed(kind.key_type), item, kind.keys_sorted)
    for is_kind, make in _LISTS:
        if is_kind(kind):
            return make(kind.value_field.with_type(changed(kind.value_type)))
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(changed(kind.value_type)), kind.list_size)
    return kind


_LISTS: Final = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def _large(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    return _inside(kind, _large)


def plain(column: pa.Array) -> pa.Array:
    """An array, or a chunked array, with its `door_type`."""
    kind = door_type(column.type)
    if kind == column.type:
        return column
    if pa.types.is_run_end_encoded(column.type):
        return plain(pc.run_end_decode(column))
    return column.cast(kind)


def _through_door(data: Any) -> Any:
    """The batch or table, with the types that columns have in batches."""
    schema = _with_types(data.schema, door_type)
    has_dictionary = any(map(pa.types.is_dictionary, schema.types))
    if schema.types == data.schema.types and not has_dictionary:
        return data
    columns = [plain(column) for column in data.columns]
    if has_dictionary:
        columns = [
            without_null_values(column) if pa.types.is_dictionary(column.type) else column
            for column in columns
        ]
    return type(data).from_arrays(columns, schema=schema)


def _with_types(schema: pa.Schema, changed: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    return pa.schema([field.with_type(changed(field.type)) for field in schema], schema.metadata)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch with these columns and no rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
