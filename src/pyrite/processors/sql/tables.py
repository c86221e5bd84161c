"""A table of a database: its columns and their types, and which columns are a key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Inspector, Integer, MetaData, Table, inspect
from sqlalchemy.exc import NoSuchTableError

from pyrite.errors import ProcessorError
from pyrite.processors.sql.kinds import kept_type, type_of

IS_MADE = "is made by the database"
"""In the info of a column: whether an item need not have it."""


def name_and_schema(table: str) -> tuple[str, str | None]:
    """
    >>> name_and_schema("sales.orders"), name_and_schema("orders")
    (('orders', 'sales'), ('orders', None))
    """
    schema, dot, name = table.rpartition(".")
    return (name, schema) if dot and schema and name else (table, None)


def found_table(connection: Connection, table: str, vertex: str) -> Table:
    """Raises ProcessorError if there is no such table or view."""
    name, schema = name_and_schema(table)
    found = inspect(connection)
    try:  # SQLAlchemy can look up the whole table, but that takes four times as long
        columns = found.get_columns(name, schema=schema)
    except NoSuchTableError:
        raise ProcessorError(
            f"vertex '{vertex}' uses the table '{table}', which the database does not have"
            f"{_similar(connection, name, schema)}"
        ) from None
    numbered = _numbered_by_sqlite(found, name, schema) if found.dialect.name == "sqlite" else None
    return Table(
        name,
        MetaData(),
        *(
            Column(
                each["name"],
                kept_type(each["type"], found.dialect.name),
                nullable=each["nullable"] or each["name"] == numbered,
                info={IS_MADE: _is_made(each) or each["name"] == numbered},
            )
            for each in columns
        ),
        schema=schema,
    )


def _is_made(column: Mapping[str, Any]) -> bool:
    return any(column.get(kind) is not None for kind in ("default", "identity", "computed"))


def _numbered_by_sqlite(found: Inspector, name: str, schema: str | None) -> str | None:
    """The column that gets the number of the row, if it is NULL."""
    key = found.get_pk_constraint(name, schema=schema)["constrained_columns"]
    types = {each["name"]: each["type"] for each in found.get_columns(name, schema=schema)}
    return key[0] if len(key) == 1 and isinstance(types[key[0]], Integer) else None


def has_table(connection: Connection, table: str) -> bool:
    name, schema = name_and_schema(table)
    return inspect(connection).has_table(name, schema=schema)


def new_table(
    table: str, create: Mapping[str, Any], key: Sequence[str] | None, dialect: str
) -> Table:
    """A table that does not exist yet, from the Python types of its columns."""
    name, schema = name_and_schema(table)
    columns = []
    for column, python in create.items():
        type, optional = type_of(python, column)
        is_key = column in (key or ())
        columns.append(
            Column(
                column,
                kept_type(type, dialect),
                primary_key=is_key,
                nullable=optional and not is_key,
                autoincrement=False,
            )
        )
    return Table(name, MetaData(), *columns, schema=schema)


def missing_columns(table: Table, names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in table.columns]


def is_unique(connection: Connection, table: Table, key: Sequence[str]) -> bool:
    """Whether the table cannot have two rows with the same values in these columns."""
    found = inspect(connection)
    sets: list[Sequence[str | None]] = [
        found.get_pk_constraint(table.name, schema=table.schema)["constrained_columns"],
        *(
            each["column_names"]
            for each in found.get_unique_constraints(table.name, schema=table.schema)
        ),
        *(
            each["column_names"]
            for each in found.get_indexes(table.name, schema=table.schema)
            if each["unique"]
            and not any("where" in name for name in each.get("dialect_options", {}))
        ),
    ]
    return any(set(each) == set(key) for each in sets if each)


def _similar(connection: Connection, name: str, schema: str | None) -> str:
    names = inspect(connection).get_table_names(schema=schema)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean '{close[0]}'?" if close else "; look at its name, or create it"
