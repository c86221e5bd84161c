"""Row groups of Parquet files, as frames: by pyarrow, or by Polars if a frame of Polars is wanted.
Polars takes 0.9 (numbers) to 0.1 (strings with few values) of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.types import is_nested

from pyrite.columns.ahead import ahead
from pyrite.columns.frames import as_batch, as_polars
from pyrite.columns.polars_types import keeps
from pyrite.processors.columns.sources.file_schemas import (
    FilesSchema,
    cannot_read,
    reading,
    with_folders,
)
from pyrite.processors.columns.sources.filters import mask_of, passed
from pyrite.processors.columns.sources.formats import BatchFormat, Kind
from pyrite.processors.columns.sources.pruning import unpruned
from pyrite.processors.files.lines import Range
from pyrite.processors.files.packing import is_packed, opened
from pyrite.processors.files.parquet.row_groups import row_groups_in, sizes_of
from pyrite.processors.files.partitions import fields_of
from pyrite.processors.files.storage import Storage, is_url

_Reader = Callable[[int], Any]
"""From the number of a row group to its rows that pass the filter."""


def file_schema(storage: Storage, path: str) -> pa.Schema:
    with _opened(storage, path) as source, pq.ParquetFile(source) as file:
        return file.schema_arrow


def frames_in(
    storage: Storage, part: Range, format: BatchFormat, known: FilesSchema, kind: Kind
) -> Iterator[Any]:
    """The row groups in a part of a file, a frame each, except those of which the statistics or
    the file's folders say that no row passes the filter."""
    path, filter = part.path, format.filter
    with (
        reading(path, known.format, known.vertex),
        _opened(storage, path) as source,
        pq.ParquetFile(source) as file,
    ):
        schema = with_folders(file.schema_arrow, path)
        known.check(path, schema)
        groups = row_groups_in(part, sizes_of(file.metadata))
        if groups and filter is not None:
            groups = unpruned(source, path, schema, groups, filter, known.filtered)
        read, threads = None, 1
        if groups and kind == "polars" and source is path:
            read = _by_polars(file, path, known, filter)
        if read is None:
            read = _by_arrow(file, path, known, filter)
        else:
            threads = _threads_of_polars()
        calls = ((_bytes_of(file, group, known), partial(read, group)) for group in groups)
        for frame in ahead(calls, threads=threads):
            if len(frame):
                yield frame


def _opened(storage: Storage, path: str) -> AbstractContextManager[Any]:
    """The path itself where Arrow can read it, which is faster."""
    return nullcontext(path) if not is_url(path) and not is_packed(path) else opened(storage, path)


def _by_arrow(
    file: pq.ParquetFile, path: str, known: FilesSchema, filter: pc.Expression | None
) -> _Reader:
    names = [name for name in known.needed.names if name in file.schema_arrow.names]

    def read(group: int) -> pa.RecordBatch:
        rows = passed(filter, known.fitted(file.read_row_group(group, columns=names), path))
        return as_batch(rows.select(known.wanted.names))

    return read


def _by_polars(
    file: pq.ParquetFile, path: str, known: FilesSchema, filter: pc.Expression | None
) -> _Reader | None:
    """None if Polars does not keep a type, or would read others than it makes of what Arrow
    reads."""
    import polars as pl

    names = [name for name in known.needed.names if name in file.schema_arrow.names]
    if not names or not all(keeps(kind) and not is_nested(kind) for kind in known.needed.types):
        return None
    rows = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(names)
    by_arrow = as_polars(known.needed.empty_table())
    if rows.collect_schema() != by_arrow.select(names).schema:
        return None
    folders = [
        pl.lit(value, pl.String).alias(name)
        for name, value in fields_of(path).items()
        if name in known.needed.names and name not in names
    ]
    counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    starts = list(accumulate(counts, initial=0))

    def read(group: int) -> pl.DataFrame:
        try:
            frame = rows.slice(starts[group], counts[group]).collect().with_columns(folders)
        except pl.exceptions.PolarsError as error:
            raise cannot_read(path, known.format, known.vertex, error) from error
        if filter is not None:
            looked_at = frame.select(known.filtered).to_arrow()
            frame = frame.filter(pl.Series(mask_of(filter, looked_at)))
        return frame.select(known.wanted.names)

    return read


def _threads_of_polars() -> int:
    """Polars reads a row group on one thread, but several of them side by side."""
    import polars as pl

    return pl.thread_pool_size()


def _bytes_of(file: pq.ParquetFile, group: int, known: FilesSchema) -> int:
    """About how many bytes the needed columns of a row group take in memory. Values that are often
    repeated take less in the file."""
    found = file.metadata.row_group(group)
    columns = (found.column(number) for number in range(found.num_columns))
    return sum(
        max(column.total_uncompressed_size, 8 * column.num_values)
        for column in columns
        if column.path_in_schema.partition(".")[0] in known.needed.names
    )
