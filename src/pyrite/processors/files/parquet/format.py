"""The Parquet format and its options. Loads Arrow only when there is something to do with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.field_types import Column
from pyrite.processors.files.formats import FileWriter, Format, Written
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage

CODECS = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")
"""How pages can be packed; the first is used unless another one is given."""

_GROUP_BYTES_OF_MANY = 1 << 23


@dataclass(frozen=True, slots=True)
class Parquet(Format):
    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    schema: Any = None
    """The pyarrow.Schema to write; None for one that fits all rows."""
    codec: str = CODECS[0]
    group_bytes: int = 1 << 26
    """About how many bytes the rows of a row group have in memory, until they are written."""
    folders: tuple[Column, ...] = ()
    """The types of fields that are in the names of folders; the others are strings."""

    @property
    def suffix(self) -> str:
        return ".parquet"

    @property
    def can_be_split(self) -> bool:
        return True

    def partitioned(self, fields: Sequence[str]) -> Parquet:
        """The same for many files at a time, without these fields: folders are named after them.
        Raises InvalidDAG."""
        of_many = replace(self, group_bytes=_GROUP_BYTES_OF_MANY)
        if self.schema is None:
            return of_many
        rest = [field for field in self.schema if field.name not in fields]
        if not rest:
            raise InvalidDAG(
                "schema of write_files() has no field besides those in partition_by, but a Parquet "
                "file needs a column"
            )
        import pyarrow

        return replace(of_many, schema=pyarrow.schema(rest, self.schema.metadata))

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        from pyrite.processors.files.parquet.reading import read_rows

        return read_rows(storage, part, self.columns, self.folders)

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        from pyrite.processors.files.parquet.writing import ParquetWriter

        return ParquetWriter(
            storage, folder, name, vertex, self.schema, self.codec, self.group_bytes
        )

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        if self.schema is not None:
            return written
        from pyrite.processors.files.parquet.pieces import with_one_schema

        return with_one_schema(storage, folder, vertex, written, self.codec)

    def join(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written], name: str
    ) -> None:
        from pyrite.processors.files.parquet.pieces import join

        join(storage, folder, [each.name for each in written], name, self.codec)


def checked_codec(processor: str, compression: Any) -> str:
    """Raises InvalidDAG."""
    if compression is None:
        return CODECS[0]
    if compression not in CODECS:
        raise InvalidDAG(
            f"compression of {processor}() must be one of {', '.join(CODECS)} if format is "
            f"'parquet'; got {shorten(compression)}"
        )
    return str(compression)


def checked_schema(schema: Any) -> Any:
    """A pyarrow.Schema that Parquet can store. Raises InvalidDAG."""
    import pyarrow
    import pyarrow.parquet

    from pyrite.processors.files.parquet.ddl import schema_of

    if isinstance(schema, str):
        schema = schema_of(schema)
    if not isinstance(schema, pyarrow.Schema):
        raise InvalidDAG(
            "schema of write_files() must be a pyarrow.Schema or a string such as "
            f"'word string, n long'; got {shorten(schema)}"
        )
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise InvalidDAG(
            "schema of write_files() must have at least one field, and each name once; got "
            f"{', '.join(schema.names) or 'none'}"
        )
    try:
        pyarrow.parquet.ParquetWriter(pyarrow.BufferOutputStream(), schema).close()
    except pyarrow.ArrowException as error:
        raise InvalidDAG(
            f"schema of write_files() cannot be stored in Parquet files: {error}"
        ) from error
    return schema
