"""Filters: pyarrow expressions that say which rows are read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from pyrite.errors import ProcessorError


def columns_of(filter: pc.Expression, schema: pa.Schema, what: str, vertex: str) -> tuple[str, ...]:
    """The columns that a filter looks at. `what` has the schema. Raises ProcessorError if the
    filter does not fit."""
    names = [name for name in schema.names if schema.names.count(name) == 1]
    fields = [schema.field(name) for name in names]
    why = _misfit(filter, pa.schema(fields))
    if why is not None:
        missing = "No match for FieldRef" in why
        there = f"; its columns are {', '.join(schema.names) or 'none at all'}" if missing else ""
        raise ProcessorError(
            f"filter of vertex '{vertex}', {filter}, does not fit {what}: "
            f"{why.splitlines()[0].split(' in ')[0] if missing else why}{there}"
        )
    text = str(filter)  # names all columns that it looks at, and maybe others by chance
    return tuple(
        field.name
        for field in fields
        if field.name in text
        and _misfit(filter, pa.schema([other for other in fields if other is not field]))
    )


def mask_of(filter: pc.Expression, table: pa.Table) -> pa.Array:
    """For each row whether it passes, or null. To filter by it takes half the time of
    `Table.filter` with the expression. Raises ArrowException."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    project = acero.Declaration("project", acero.ProjectNodeOptions([filter], [""]))
    made = acero.Declaration.from_sequence([source, project]).to_table()
    return made.column(0).combine_chunks()


def passed(filter: pc.Expression | None, table: pa.Table) -> pa.Table:
    return table if filter is None else table.filter(mask_of(filter, table))


def _misfit(filter: pc.Expression, schema: pa.Schema) -> str | None:
    try:
        schema.empty_table().filter(filter)
    except (pa.ArrowException, TypeError) as error:
        return str(error)
    return None
