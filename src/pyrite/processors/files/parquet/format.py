"""The Parquet format and its options. Loads Arrow only when there is something to do with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage
from pyrite.processors.steps import Writer


@dataclass(frozen=True, slots=True)
class Parquet(Format):
    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    schema: Any = None
    """The pyarrow.Schema to write; None for one that fits all rows."""
    suffix = ".parquet"

    @property
    def can_be_split(self) -> bool:
        return True

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        from pyrite.processors.files.parquet.reading import read_rows

        return read_rows(storage, part, self.columns)

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> Writer:
        from pyrite.processors.files.parquet.writing import ParquetWriter

        return ParquetWriter(storage, folder, name, vertex, self.schema)

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        if self.schema is not None:
            return written
        from pyrite.processors.files.parquet.pieces import with_one_schema

        return with_one_schema(storage, folder, vertex, written)


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
