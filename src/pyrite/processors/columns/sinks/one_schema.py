"""The one schema of all batches that a sink writes: that of the first batch of each processor, or
one that is given, and then the same in all processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyrite.columns.frames import as_batch
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.columns.sources.file_schemas import have_same_values
from pyrite.processors.files.formats import Written
from pyrite.processors.loops.steps import BadItem
from pyrite.weights import is_batch

_ADVICE = "make all of one type with map_batches() before, or give schema= to write_batches()"


class OneSchema:
    """Gives all batches of one processor the same columns, in the same order."""

    def __init__(self, vertex: str, given: pa.Schema | None) -> None:
        self._vertex = vertex
        self._schema = given
        self._is_given = given is not None

    def fit(self, item: Any) -> pa.RecordBatch:
        """The batch with the schema of all. Raises BadItem."""
        check_batch(item, self._vertex)
        batch = as_batch(item)
        if self._schema is None:
            self._schema = _bare(batch.schema)
        if batch.schema.equals(self._schema, check_metadata=True):
            return batch
        return self._fitted(batch, self._schema)

    def _fitted(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        whose = "the schema" if self._is_given else "the batches before"
        names = batch.schema.names
        for name in [*schema.names, *names]:
            count = names.count(name)
            if count != 1 or name not in schema.names:
                has = "no" if not count else "a" if count == 1 else "more than one"
                raise self._bad(
                    f"a batch has {has} column '{name}', and the columns of {whose} are "
                    f"{', '.join(schema.names)}; choose the same columns in all batches",
                    batch,
                )
        columns = []
        for field in schema:
            column = batch.column(field.name)
            if not self._is_given and not have_same_values(column.type, field.type):
                raise self._bad(
                    f"column '{field.name}' of a batch is {column.type}, and {field.type} in "
                    f"{whose}; {_ADVICE}",
                    batch,
                )
            try:
                columns.append(column.cast(field.type))
            except pa.ArrowException as error:
                raise self._bad(
                    f"column '{field.name}' of a batch is {column.type}, and cannot be written as "
                    f"{field.type}: {error}",
                    batch,
                ) from error
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _bad(self, why: str, batch: pa.RecordBatch) -> BadItem:
        return BadItem(f"vertex '{self._vertex}' writes batches of one schema: {why}", batch)


def check_batch(item: Any, vertex: str) -> None:
    """Raises BadItem."""
    if not is_batch(item):
        raise BadItem(
            f"vertex '{vertex}' writes batches of rows (pyarrow.RecordBatch); got {shorten(item)}; "
            "put p.batches(schema) before it, or use write_files()",
            item,
        )


def one_schema(
    vertex: str, written: Sequence[Written], *, in_one_order: bool = False
) -> pa.Schema | None:
    """The schema of all files; None if nobody has had any batch. Raises ProcessorError. That of a
    file without rows does not count where others have rows."""
    known = [each for each in written if each.about is not None]
    schemas = [each.about for each in known if not each.is_empty] or [each.about for each in known]
    if not schemas:
        return None
    first = schemas[0]
    for schema in schemas[1:]:
        if sorted(schema.names) != sorted(first.names) or (
            in_one_order and schema.names != first.names
        ):
            raise ProcessorError(
                f"vertex '{vertex}' writes batches of one schema, but its processors got batches "
                f"with the columns {', '.join(first.names)} and {', '.join(schema.names)}; choose "
                "the same columns in all batches"
            )
        for field in first:
            other = schema.field(field.name)
            if have_same_values(field.type, other.type):
                continue
            if not have_same_values(other.type, field.type):
                raise ProcessorError(
                    f"vertex '{vertex}' writes batches of one schema, but column '{field.name}' is "
                    f"{field.type} in some and {other.type} in others; {_ADVICE}"
                )
    return pa.schema([_typed(field, schemas) for field in first])


def _typed(field: pa.Field, schemas: Sequence[pa.Schema]) -> pa.Field:
    """The first type that is not null."""
    types = [schema.field(field.name).type for schema in schemas]
    return field.with_type(next((type for type in types if not pa.types.is_null(type)), field.type))


def _bare(schema: pa.Schema) -> pa.Schema:
    """Without what describes where the rows came from."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])
