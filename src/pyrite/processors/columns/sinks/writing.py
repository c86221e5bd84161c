"""write_batches: a folder of files with the rows of batches, as a sink."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.columns.arrow_types import ArrowSchema
from pyrite.processors.columns.sinks.formats import CsvSink, JsonSink, ParquetSink
from pyrite.processors.files.formats import Format
from pyrite.processors.files.known_formats import checked_packing
from pyrite.processors.files.layout import checked_layout
from pyrite.processors.files.parquet import checked_codec
from pyrite.processors.files.placing import Files
from pyrite.processors.files.storage import checked_path
from pyrite.processors.files.writing import WriteFiles
from pyrite.processors.loops.steps import Writer
from pyrite.processors.ready_made import Sink

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = ("parquet", "csv", "json", "jsonl")


def write_batches(
    dir: str | os.PathLike[str],
    format: Literal["parquet", "csv", "json", "jsonl"] = "parquet",
    *,
    schema: ArrowSchema | Mapping[str, Any] | None = None,
    partition_by: str | Sequence[str] | None = None,
    target_size: int | None = None,
    compression: str | None = None,
    single_file: bool | str = False,
) -> Sink[Any]:
    """Writes the rows of batches to files in a folder, `part-00000` and on, one per processor:
    Parquet, CSV or JSON lines.

    The folder is a path, or a URL that fsspec knows. As with `write_files`, the files appear when
    the job has completed, and replace those that an earlier job wrote there; a job that fails
    changes nothing.

    All batches must have the same columns, with the same types. With `schema`, a pyarrow.Schema or
    a dict such as `{"name": "string", "n": "int64"}`, they are cast to its types. `partition_by` is
    a column, or several: their values name folders such as `country=DE`, and the files in them do
    not repeat them. With `target_size`, a processor begins another file when one has about this
    many bytes. `compression` is `gzip` or `zstd`, and for Parquet also another codec.
    `single_file=True` makes one file of all, or one for each partition; it may be the name of that
    file.

    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     pipe = Pipeline()
    ...     batches = pipe.read_from([pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]})])
    ...     batches.write_to(p.write_batches(folder, single_file="numbers.parquet"))
    ...     pipe.run()
    ...     pq.read_table(f"{folder}/numbers.parquet")["n"].to_pylist()
    [1, 2, 3]
    """
    path = checked_path("write_batches", dir)
    checked = _format(format, compression)
    layout = checked_layout(
        "write_batches", partition_by, target_size, single_file, suffix=checked.suffix
    )
    if layout.function is not None:
        raise InvalidDAG(
            "partition_by of write_batches() must be the name of a column, or a list of such "
            f"names; got {shorten(partition_by)}"
        )
    types = None
    if schema is not None:
        from pyrite.columns.given import checked_schema

        types = checked_schema(schema, "write_batches()")
    return Sink(WriteBatches(path, checked, layout, types))


@dataclass(frozen=True, slots=True)
class WriteBatches(WriteFiles):
    schema: pa.Schema | None = None
    """Of all batches; None for that of the first."""
    columnar = True
    may_block = True

    def writer(self, files: Files) -> Writer:
        from pyrite.processors.columns.sinks.placing import writer_of

        return writer_of(files, self.layout, self.schema)


def _format(name: Any, compression: Any) -> Format:
    if not isinstance(name, str) or name not in _FORMATS:
        raise InvalidDAG(
            f"format of write_batches() must be one of {', '.join(_FORMATS)}; got {shorten(name)}"
        )
    if name == "parquet":
        return ParquetSink(checked_codec("write_batches", compression))
    packing = checked_packing("write_batches", name, compression)
    return CsvSink(compression=packing) if name == "csv" else JsonSink(compression=packing)
