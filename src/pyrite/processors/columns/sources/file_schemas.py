"""The columns that all files of a source have: those of the first file, and those that are in the
names of its folders. Every other file is checked against them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyrite.columns.frames import empty_batch
from pyrite.columns.schemas import have_same_values as have_same_values
from pyrite.errors import ProcessorError
from pyrite.functions import did_you_mean
from pyrite.processors.columns.sources.filters import columns_of
from pyrite.processors.columns.sources.formats import BatchFormat
from pyrite.processors.files.partitions import fields_of
from pyrite.processors.files.storage import Storage


@dataclass(frozen=True, slots=True)
class FilesSchema:
    """Plain data: it travels with the source."""

    vertex: str
    format: str
    path: str
    """Of the first file."""
    wanted: pa.Schema
    """The columns to emit."""
    needed: pa.Schema
    """The same, and those that only the filter looks at."""
    filtered: tuple[str, ...]
    """The columns that the filter looks at."""
    has_choice: bool
    """Whether the columns to emit were chosen, so that files may have others."""

    @staticmethod
    def of(
        format: BatchFormat, storage: Storage, paths: Sequence[str], vertex: str
    ) -> FilesSchema | None:
        """Looks at the first file that says what columns there are; None if there is none. Raises
        ProcessorError if the columns or the filter do not fit it."""
        for path in paths:
            with reading(path, format.name, vertex):
                there = format.file_schema(storage, path)
            if there is not None:
                break
        else:
            return None
        whole = with_folders(there, path)
        names = list(format.columns or whole.names)
        _check_names(names, whole, path, format.name, vertex)
        what = f"the columns of {format.name} file '{path}'"
        used = () if format.filter is None else columns_of(format.filter, whole, what, vertex)
        more = [name for name in used if name not in names]
        return FilesSchema(
            vertex,
            format.name,
            path,
            _selected(whole, names),
            _selected(whole, [*names, *more]),
            used,
            format.columns is not None or format.schema is not None,
        )

    def no_rows(self) -> pa.RecordBatch:
        """A batch that has only the columns."""
        return empty_batch(self.wanted)

    def check(self, path: str, schema: pa.Schema) -> None:
        """Raises ProcessorError if a file with these columns is not like the first."""
        _check_names(self.needed.names, schema, path, self.format, self.vertex)
        for name in self.needed.names:
            here, there = schema.field(name).type, self.needed.field(name).type
            if not have_same_values(here, there):
                raise self._differ(
                    f"column '{name}' is {here} in '{path}' and {there} in '{self.path}'; write "
                    "them again with one type, or read them by two vertices"
                )
        others = [name for name in schema.names if name not in self.wanted.names]
        if others and not self.has_choice:
            raise self._differ(
                f"'{path}' has a column '{others[0]}', which '{self.path}' has not; choose columns "
                "that all files have with columns=[...]"
            )

    def fitted(self, table: pa.Table, path: str) -> pa.Table:
        """Rows of a file that was checked, with the columns and types of `needed`."""
        folders = fields_of(path)
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else _repeated(folders[field.name], table.num_rows)
            for field in self.needed
        ]
        return pa.Table.from_arrays(columns, schema=self.needed)

    def _differ(self, how: str) -> ProcessorError:
        return ProcessorError(f"vertex '{self.vertex}' reads files whose columns differ: {how}")


@contextmanager
def reading(path: str, format: str, vertex: str) -> Iterator[None]:
    """Turns errors of Arrow into sentences."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise cannot_read(path, format, vertex, error) from error


def cannot_read(path: str, format: str, vertex: str, why: Exception) -> ProcessorError:
    return ProcessorError(f"vertex '{vertex}' cannot read '{path}' as a {format} file: {why}")


def with_folders(schema: pa.Schema, path: str) -> pa.Schema:
    """The columns of a file, and those that its folders are named after, which are strings."""
    folders = [name for name in fields_of(path) if name not in schema.names]
    return pa.schema([*schema, *(pa.field(name, pa.string()) for name in folders)])


def _check_names(
    names: Sequence[str], schema: pa.Schema, path: str, format: str, vertex: str
) -> None:
    for name in names:
        count = schema.names.count(name)
        if count != 1:
            raise ProcessorError(
                f"vertex '{vertex}' reads column '{name}', but {format} file '{path}' has "
                f"{'more than one' if count else 'no'} such column; its columns are "
                f"{', '.join(schema.names) or 'none at all'}"
                f"{'' if count else did_you_mean(name, schema.names)}"
            )


def _selected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Without metadata, which describe the file, not the rows."""
    fields = [schema.field(name) for name in names]
    return pa.schema([pa.field(field.name, field.type) for field in fields])


def _repeated(value: Any, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)
