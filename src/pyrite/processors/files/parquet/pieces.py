"""Pieces: Parquet files that hold a part of a job's rows, each with the schema that fits its rows;
and how they come to have the one that fits all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyrite.errors import ProcessorError
from pyrite.functions import shorten, shorten_text
from pyrite.processors.files.formats import Written
from pyrite.processors.files.parquet.kinds import (
    NO_FIELDS,
    NOTHING,
    CannotUnite,
    Fields,
    arrow_schema,
    kind_of,
    unite,
)
from pyrite.processors.files.storage import Storage
from pyrite.processors.loops.steps import BadItem

ROWS_PER_GROUP = 65536
_MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of an attempt. Of rows without any field it holds none, but knows how many there
    were."""

    name: str
    """Empty in a report, which names the file itself."""
    fields: Fields
    rows: int
    examples: Mapping[str, Any]
    """By field, a row that shows the kind of the field, or the beginning of its text if it is
    long: reports travel to the driver."""


def with_one_schema(
    storage: Storage, folder: str, vertex: str, written: Sequence[Written], codec: str
) -> list[Written]:
    """Files with the rows of these, all with the schema that fits all rows. Those that have it
    already are left as they are."""
    fields, examples = NO_FIELDS, dict[str, Any]()
    for each in written:
        piece: Piece = each.about
        before = fields
        try:
            fields = unite(fields, piece.fields)
        except CannotUnite as error:
            example, item = examples[error.path[0]], piece.examples[error.path[0]]
            raise BadItem(
                f"{cannot_unite(vertex, error, example)}: {described(item)}", item
            ) from None
        for name in changed(before, fields):
            examples[name] = piece.examples[name]
    rows = sum(each.about.rows for each in written)
    if rows and not fields.kinds:
        raise ProcessorError(
            f"vertex '{vertex}' wrote {rows} rows and none of them has a field, but a Parquet file "
            "needs a column; give schema= to write_files()"
        )
    return [
        each
        if each.about.fields == fields
        else replace(
            each,
            name=_rewritten(
                storage, folder, vertex, [replace(each.about, name=each.name)], fields, codec
            ).name,
        )
        for each in written
    ]


def as_one_piece(
    storage: Storage, folder: str, vertex: str, pieces: Sequence[Piece], codec: str
) -> Piece:
    """One file with the rows of several, whose last has a schema that fits all."""
    return (
        pieces[0]
        if len(pieces) == 1
        else _rewritten(storage, folder, vertex, pieces, pieces[-1].fields, codec)
    )


def join(storage: Storage, folder: str, names: Sequence[str], name: str, codec: str) -> None:
    """Writes the rows of files that have one schema to a new file, a row group at a time."""
    with storage.open(f"{folder}/{names[0]}", "rb") as first:
        schema = pq.read_schema(first)
    with (
        storage.open(f"{folder}/{name}", "wb") as target,
        pq.ParquetWriter(target, schema, compression=codec) as writer,
    ):
        for each in names:
            with storage.open(f"{folder}/{each}", "rb") as file, pq.ParquetFile(file) as source:
                for index in range(source.num_row_groups):
                    writer.write_table(source.read_row_group(index))


def cannot_unite(vertex: str, error: CannotUnite, example: Any) -> str:
    return (
        f"vertex '{vertex}' cannot write field '{field_name(error.path)}' of an item to Parquet, "
        f"because it is {error.two} there and {error.one} in other rows, such as "
        f"{described(example)}; make all of one type, or give schema= to write_files()"
    )


def add_examples(
    examples: dict[str, Any], before: Fields, after: Fields, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Adds a row for each field whose kind these rows have changed."""
    for name in changed(before, after):
        having = [row for row in rows if row.get(name) is not None]
        exact = (row for row in having if kind_of([row[name]]) == after.kinds[name])
        examples[name] = _cut(next(exact, having[0]))


def changed(before: Fields, after: Fields) -> list[str]:
    """The fields whose kinds are not what they were."""
    return [name for name, kind in after.kinds.items() if kind != before.kinds.get(name, NOTHING)]


def described(example: Any) -> str:
    return shorten_text(example, 120) if isinstance(example, str) else shorten(example)


def _cut(row: Mapping[str, Any]) -> Any:
    text = shorten(row, _MOST_TEXT)
    return row if len(text) < _MOST_TEXT else text


def field_name(path: Sequence[str]) -> str:
    return ".".join(path).replace(".[]", "[]")


def widened(array: Any, type: pa.DataType) -> Any:
    """The same values in an array or chunked array of a type that holds them. Raises
    ArrowException."""
    if array.type == type:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type)
    if pa.types.is_nested(type):
        return pa.array(array.to_pylist(), type=type)
    return array.cast(type)


def _rewritten(
    storage: Storage,
    folder: str,
    vertex: str,
    pieces: Sequence[Piece],
    fields: Fields,
    codec: str,
) -> Piece:
    """A row group at a time, so that memory holds no more than one."""
    last = pieces[-1]
    name, schema = f"{last.name}.united", arrow_schema(fields)
    with (
        storage.open(f"{folder}/{name}", "wb") as target,
        pq.ParquetWriter(target, schema, compression=codec) as writer,
    ):
        for piece in pieces:
            for rows, columns in _groups(storage, folder, piece):
                arrays = []
                for field in schema:
                    column = columns.get(field.name)
                    try:
                        arrays.append(
                            pa.nulls(rows, field.type)
                            if column is None
                            else widened(column, field.type)
                        )
                    except pa.ArrowException as error:
                        raise ProcessorError(
                            f"vertex '{vertex}' cannot write field '{field.name}' to Parquet as "
                            f"{field.type}, which other rows need: {error}; give schema= to "
                            "write_files()"
                        ) from error
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema), rows)
    return replace(last, name=name, fields=fields, rows=sum(piece.rows for piece in pieces))


def _groups(
    storage: Storage, folder: str, piece: Piece
) -> Iterator[tuple[int, dict[str, pa.ChunkedArray]]]:
    """The row groups of a piece: how many rows each has, and its columns."""
    if not piece.fields.kinds:
        for start in range(0, piece.rows, ROWS_PER_GROUP):
            yield min(ROWS_PER_GROUP, piece.rows - start), {}
        return
    with storage.open(f"{folder}/{piece.name}", "rb") as source, pq.ParquetFile(source) as file:
        for index in range(file.num_row_groups):
            table = file.read_row_group(index)
            yield table.num_rows, dict(zip(table.column_names, table.columns))
