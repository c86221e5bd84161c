"""The columns of batches: finds them by name, compares them between batches, and says what does not
fit, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

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
    """The batch with the columns and types that are expected, in the order that is expected. It may
    have another order and other encodings of the same values, but no other values. Metadata and
    nullability are not compared."""
    schema = batch.schema
    if schema.names == expected.names and schema.types == expected.types:
        return batch
    positions = [position_of(schema, name, where) for name in expected.names]
    for field, position in zip(expected, positions):
        found = schema.field(position).type
        if not have_same_values(found, field.type):
            raise other_type(field.name, field.type, found, where)
    if len(positions) < len(schema):
        extra = next(name for name in schema.names if name not in set(expected.names))
        raise InvalidBatch(
            f"{_at(where)}a batch has the column {extra!r}, which other batches do not have; their "
            f"columns are {_listed(expected.names)}. Select the same columns in all batches"
        )
    columns = []
    for field, position in zip(expected, positions):
        try:
            columns.append(batch.column(position).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # too many values for a dictionary
            raise other_type(field.name, field.type, schema.field(position).type, where) from None
    return pa.RecordBatch.from_arrays(columns, schema=expected)


def completed(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The schema, with types that can hold the columns of another one, too. A column that had no
    values until now (type null) has the type that it has there; one with a dictionary that it does
    not have there loses it, or gets a wider index."""
    if not may_be_completed(known):
        return known
    fields = []
    for field in known:
        at = found.get_field_index(field.name)
        kind = field.type if at < 0 else _for_both(field.type, found.field(at).type)
        fields.append(field.with_type(kind))
    return pa.schema(fields, known.metadata)


def may_be_completed(schema: pa.Schema) -> bool:
    return any(pa.types.is_null(kind) or pa.types.is_dictionary(kind) for kind in schema.types)


def _for_both(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    of = pa.types
    if of.is_null(known) or of.is_null(found):
        return found if of.is_null(known) else known
    if not of.is_dictionary(known) or not have_same_values(found, known):
        return known
    if of.is_dictionary(found) and found.index_type.bit_width <= known.index_type.bit_width:
        return known
    return found


def have_same_values(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether a column of the one type can be read as one of the other: they are equal, or other
    encodings of the same values; or the first has no values at all.

    >>> have_same_values(pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
    True
    >>> have_same_values(pa.int32(), pa.int64())
    False
    """
    return bool(pa.types.is_null(one) or _plain(one) == _plain(other))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The simplest type with the same values."""
    of = pa.types
    if of.is_dictionary(kind):
        return _plain(kind.value_type)
    if of.is_large_string(kind) or of.is_string_view(kind):
        return pa.string()
    if of.is_large_binary(kind) or of.is_binary_view(kind):
        return pa.binary()
    if of.is_list(kind) or of.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if of.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind


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
