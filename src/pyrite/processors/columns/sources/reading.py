"""read_batches: the rows of files that match a pattern, as batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.columns.arrow_types import ArrowExpression, ArrowSchema
from pyrite.processors.columns.sources.formats import (
    BatchFormat,
    CsvBatches,
    JsonBatches,
    Kind,
    ParquetBatches,
)
from pyrite.processors.files.known_formats import checked_columns
from pyrite.processors.files.lines import Range
from pyrite.processors.files.reading import ReadFiles
from pyrite.processors.files.storage import checked_path, storage_of
from pyrite.processors.ready_made import BatchSource

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_FORMATS: Final[dict[str, type[BatchFormat]]] = {
    "parquet": ParquetBatches,
    "csv": CsvBatches,
    "json": JsonBatches,
    "jsonl": JsonBatches,
}


def read_batches(
    glob: str | os.PathLike[str],
    format: Literal["parquet", "csv", "json", "jsonl"] = "parquet",
    *,
    columns: Sequence[str] | None = None,
    filter: ArrowExpression | None = None,
    schema: ArrowSchema | Mapping[str, Any] | None = None,
) -> BatchSource:
    """Emits the rows of the files that match a glob pattern as batches, each a
    `pyarrow.RecordBatch`: the row groups of Parquet files, and blocks of CSV files and JSON lines.

    The pattern is a path, or a URL that fsspec knows. Files whose names end in .gz or .zst are
    unpacked on the way. All processors of the vertex share the work: Parquet files are divided by
    row groups, JSON lines by bytes, CSV files are read whole.

    With `columns`, only these columns are read, in this order. With `filter`, a pyarrow expression
    such as `pc.field("price") > 10`, only rows that pass it are emitted, and row groups of which
    the statistics say that none can pass are not read. All files must have the same columns, with
    the same types; where folders have names such as `country=DE`, that is a column of strings.

    `schema`, a pyarrow.Schema or a dict such as `{"name": "string", "age": "int64"}`, gives the
    columns of CSV files and JSON lines and their types. Without it, they are those of the first
    rows. An empty field of a CSV file is null, and an empty string if it is quoted.

    >>> import pyarrow as pa
    >>> import pyarrow.compute as pc
    >>> import pyarrow.parquet as pq
    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     people = pa.table({"name": ["ann", "bob"], "age": [41, 7]})
    ...     pq.write_table(people, f"{folder}/people.parquet")
    ...     adults = p.read_batches(f"{folder}/*.parquet", filter=pc.field("age") >= 18)
    ...     [batch.to_pylist() for batch in Pipeline().read_from(adults).collect()]
    [[{'name': 'ann', 'age': 41}]]
    """
    path = checked_path("read_batches", glob)
    if not isinstance(format, str) or format not in _FORMATS:
        raise InvalidDAG(
            f"format of read_batches() must be one of {', '.join(_FORMATS)}; got {shorten(format)}"
        )
    chosen = checked_columns("read_batches", columns)
    types = None if schema is None else _checked_schema(schema, format)
    return BatchSource(ReadBatches(path, _FORMATS[format](chosen, _checked_filter(filter), types)))


@dataclass(frozen=True, slots=True)
class ReadBatches(ReadFiles):
    format: BatchFormat
    columnar = True
    may_block = True
    heavy = True
    """Each item is many rows: they are read one at a time."""

    def found(self, vertex: str, readers: int) -> ReadBatches:
        from pyrite.processors.columns.sources.file_schemas import FilesSchema

        found = ReadFiles.found(self, vertex, readers)
        assert isinstance(found, ReadBatches)
        assert found.files
        paths = [file.path for file in found.files]
        known = FilesSchema.of(self.format, storage_of(self.pattern), paths, vertex)
        return replace(found, format=replace(self.format, known=known))

    def blocks(self, parts: Iterable[Range]) -> Generator[list[Any], None, None]:
        """What a durable job reads of a split. Here, too, the columns are told if no rows are."""
        has_given = False
        for block in ReadFiles.blocks(self, parts):
            has_given = True
            yield block
        if not has_given and self.format.known is not None:
            yield [self.format.known.no_rows()]

    def open(self, context: ProcessorContext) -> Generator[Any, None, None]:
        return self.frames(context, "arrow")

    def frames(
        self,
        context: ProcessorContext,
        kind: Kind,
        expect: Callable[[pa.Schema], None] | None = None,
    ) -> Generator[Any, None, None]:
        """What `open` emits, as frames of this kind where there are such. Before, `expect` is told
        the types in Arrow. A processor without rows emits an empty batch: the next step must know
        the columns."""
        found = self if self.files else self.found_once(context)
        if expect is not None and found.format.known is not None:
            expect(found.format.known.wanted)
        storage = storage_of(self.pattern)
        has_given = False
        for part in found.share(context):
            for frame in found.format.frames(storage, part, kind):
                has_given = True
                yield frame
        if not has_given and found.format.known is not None:
            yield found.format.known.no_rows()


def _checked_schema(given: Any, format: str) -> pa.Schema:
    if format == "parquet":
        raise InvalidDAG(
            "schema of read_batches() is for csv and json files, because parquet files have their "
            "own; leave schema out"
        )
    from pyrite.columns.given import checked_schema

    return checked_schema(given, "read_batches()")


def _checked_filter(given: Any) -> pc.Expression | None:
    if given is None:
        return None
    import pyarrow.compute as pc

    if not isinstance(given, pc.Expression):
        raise InvalidDAG(
            "filter of read_batches() must be a pyarrow expression, such as pc.field('price') > "
            f"10; got {shorten(given)}"
        )
    return given
