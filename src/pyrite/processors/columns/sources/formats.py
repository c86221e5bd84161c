"""The formats whose files are read as batches, and their options. Plain data: it travels with the
source. Loads Arrow only when there is something to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pyrite.processors.files.formats import Format
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from pyrite.processors.columns.sources.file_schemas import FilesSchema

Kind = Literal["arrow", "polars"]
"""In what kind of frame rows are wanted: a `pyarrow.RecordBatch`, or a `polars.DataFrame` where
that is faster. Who wants the latter may get the former."""


@dataclass(frozen=True, slots=True)
class BatchFormat(Format):
    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    filter: pc.Expression | None = None
    """Which rows to read; None for all."""
    schema: pa.Schema | None = None
    """The columns and their types, if they were given for files that do not say them."""
    goes_on: bool = False
    """Whether a line of JSON that does not fit is a BadRecord among the frames, not an error."""
    known: FilesSchema | None = None
    """What all files have in common, once the first was looked at."""
    name: ClassVar[str]
    """As it is in sentences."""

    def file_schema(self, storage: Storage, path: str) -> pa.Schema | None:
        """The columns of a file; None if it has none, or no rows to see their types."""
        raise NotImplementedError

    def frames(self, storage: Storage, part: Range, kind: Kind) -> Iterator[Any]:
        """The rows of a part of a file that pass the filter, in frames that have at least one. If
        it goes on, there may be a BadRecord among them."""
        raise NotImplementedError

    def going_on(self) -> BatchFormat:
        return replace(self, goes_on=True)

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        for frame in self.frames(storage, part, "arrow"):
            yield [frame]


@dataclass(frozen=True, slots=True)
class ParquetBatches(BatchFormat):
    name = "Parquet"

    @property
    def can_be_split(self) -> bool:
        return True

    def file_schema(self, storage: Storage, path: str) -> pa.Schema:
        from pyrite.processors.columns.sources.parquet import file_schema

        return file_schema(storage, path)

    def frames(self, storage: Storage, part: Range, kind: Kind) -> Iterator[Any]:
        from pyrite.processors.columns.sources.parquet import frames_in

        return iter(()) if self.known is None else frames_in(storage, part, self, self.known, kind)


@dataclass(frozen=True, slots=True)
class CsvBatches(BatchFormat):
    name = "CSV"

    def file_schema(self, storage: Storage, path: str) -> pa.Schema | None:
        from pyrite.processors.columns.sources.csv_blocks import inferred

        return self.schema or inferred(storage, path)

    def frames(self, storage: Storage, part: Range, kind: Kind) -> Iterator[Any]:
        from pyrite.processors.columns.sources.text_files import csv_frames

        return iter(()) if self.known is None else csv_frames(storage, part, self, self.known)


@dataclass(frozen=True, slots=True)
class JsonBatches(BatchFormat):
    name = "JSON lines"

    @property
    def can_be_split(self) -> bool:
        return True

    def file_schema(self, storage: Storage, path: str) -> pa.Schema | None:
        from pyrite.processors.columns.sources.json_blocks import inferred

        return self.schema or inferred(storage, path, goes_on=self.goes_on)

    def frames(self, storage: Storage, part: Range, kind: Kind) -> Iterator[Any]:
        from pyrite.processors.columns.sources.text_files import json_frames

        return iter(()) if self.known is None else json_frames(storage, part, self, self.known)
