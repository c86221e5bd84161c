"""The columns of batches: finds them by name, compares them between batches, and says what does not
fit, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pyrite.errors import PyriteError
from pyrite.functions import did_you_mean


class InvalidBatch(PyriteError, ValueError):
    """A batch that has not the columns, or not the types, that are needed."""


def column_of(batch: pa.RecordBatch, name: str, where: str = "") -> pa.Array:
    """The column of that name. `where` says for error messages who needs it, such as `vertex
    'sum'`."""
    return batch.column(position_of(batch.schema, name, where))


def position_of(schema: pa.Schema, name: str, where: str = "") -> int:
    """The position of the column of that name."""
    positions = schema.get_all_field_indices(name)
    if len(positions) == 1:
        found: int = positions[0]
        return found
    raise no_column(name, schema.names, where) if not positions else ambiguous_column(name, where)


def checked(batch: pa.RecordBatch, expected: pa.Schema, where: str) -> pa.RecordBatch:
    """The batch, if it has exactly the columns and types that are expected; in the order that is
    expected. Metadata and nullability are not compared."""
    schema = batch.schema
    if schema.names == expected.names and schema.types == expected.types:
        return batch
    positions = [position_of(schema, name, where) for name in expected.names]
    for field, position in zip(expected, positions):
        found = schema.field(position).type
        if found != field.type:
            raise other_type(field.name, field.type, found, where)
    if len(positions) < len(schema):
        extra = next(name for name in schema.names if name not in set(expected.names))
        raise InvalidBatch(
            f"{_at(where)}a batch has the column {extra!r}, which other batches do not have; their "
            f"columns are {_listed(expected.names)}. Select the same columns in all batches"
        )
    return batch.select(positions)


def unified(schemas: Iterable[pa.Schema], where: str) -> pa.Schema:
    """The one schema of all: they must have the same columns with the same types. A column in which
    one schema has only nulls (type null) has the type of the others."""
    known: pa.Schema | None = None
    for schema in schemas:
        known = schema if known is None else _unified(known, schema, where)
    return pa.schema([]) if known is None else known


def _unified(known: pa.Schema, schema: pa.Schema, where: str) -> pa.Schema:
    fields = []
    for name in schema.names:
        position_of(known, name, where)
    for field in known:
        other = schema.field(position_of(schema, field.name, where))
        if pa.types.is_null(field.type):
            fields.append(other)
        elif pa.types.is_null(other.type) or other.type == field.type:
            fields.append(field)
        else:
            raise other_type(field.name, field.type, other.type, where)
    return pa.schema(fields, known.metadata)


def no_column(name: str, names: Sequence[str], where: str = "") -> InvalidBatch:
    near = did_you_mean(name, names)
    columns = f"{near} The columns are" if near else "; the columns are"
    return InvalidBatch(f"{_at(where)}there is no column {name!r}{columns} {_listed(names)}")


def ambiguous_column(name: str, where: str = "") -> InvalidBatch:
    return InvalidBatch(
        f"{_at(where)}there are several columns {name!r} in a batch; give each another name"
    )


def other_type(
    name: str, expected: pa.DataType, found: pa.DataType, where: str = ""
) -> InvalidBatch:
    """Two batches, or files, have different types for a column."""
    return InvalidBatch(
        f"{_at(where)}the column {name!r} is {found} in one batch and {expected} in another; cast "
        f"it to one type before, for example with map_batches"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none: the batch has no columns"


def _at(where: str) -> str:
    return f"{where}: " if where else ""
