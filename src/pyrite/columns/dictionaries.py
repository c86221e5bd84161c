"""The dictionaries of dictionary-encoded columns, where a batch is cut into pieces. Arrow counts,
copies and sends all of a dictionary with each piece, however few of its values the piece has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyrite.columns.schemas import checked


def dictionary_columns(schema: pa.Schema) -> list[int]:
    """The positions of the dictionary-encoded columns."""
    return [number for number, kind in enumerate(schema.types) if pa.types.is_dictionary(kind)]


def without_unused(batch: pa.RecordBatch, columns: Sequence[int]) -> pa.RecordBatch:
    """The batch. The dictionary of each of the columns that has more values than the batch has rows
    loses those that no row has; the others keep their order."""
    for number in columns:
        column = batch.column(number)
        fewer = without_unused_values(column)
        if fewer is not column:
            batch = batch.set_column(number, batch.schema.field(number), fewer)
    return batch


def without_unused_values(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The array, without the values of its dictionary that no row has, if there are more values
    than rows."""
    if len(column.dictionary) <= len(column):
        return column
    valid = column.indices.drop_null().to_numpy()
    used = np.unique(valid)
    numbers = np.zeros(len(column.dictionary), column.type.index_type.to_pandas_dtype())
    numbers[used] = np.arange(len(used))
    at = column.indices.fill_null(int(used[0]) if len(used) else 0).to_numpy()
    null = column.indices.is_null().to_numpy(zero_copy_only=False)
    indices = pa.array(numbers[at], mask=null)
    return pa.DictionaryArray.from_arrays(
        indices, column.dictionary.take(pa.array(used)), ordered=column.type.ordered
    )


def without_null_values(column: pa.Array) -> pa.Array:
    """A dictionary-encoded array, or a chunked one, in whose dictionary no value is null: Arrow
    cannot put such dictionaries together."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array(map(without_null_values, column.chunks), column.type)
    if not column.dictionary.null_count:
        return column
    encoded = column.dictionary_decode().dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(column.type.index_type),
        encoded.dictionary,
        ordered=column.type.ordered,
    )


def table_of(batches: Sequence[pa.RecordBatch], where: str) -> pa.Table:
    """The rows of batches of one side, with one dictionary for each column. The last batch has the
    types of all: it may have types for columns that had no values before."""
    schema = batches[-1].schema
    return unified(pa.Table.from_batches([checked(each, schema, where) for each in batches]))


def unified(table: pa.Table) -> pa.Table:
    """The table, with one dictionary for all chunks of a column. Its index becomes wider if it
    must."""
    try:
        return table.unify_dictionaries()
    except pa.ArrowInvalid:
        for number in dictionary_columns(table.schema):
            column, field = table.column(number), table.schema.field(number)
            values = [chunk.dictionary_decode() for chunk in column.chunks]
            encoded = pa.chunked_array(values, column.type.value_type).dictionary_encode()
            table = table.set_column(number, field.with_type(encoded.type), encoded)
        return table


def fit_together(batches: Sequence[pa.RecordBatch], columns: Sequence[int]) -> bool:
    """Whether the indices of these columns are wide enough for the dictionaries of all batches."""
    for number in columns:
        kind = batches[0].column(number).type.index_type.to_pandas_dtype()
        values = sum(len(batch.column(number).dictionary) for batch in batches)
        if values > np.iinfo(kind).max:
            return False
    return True
