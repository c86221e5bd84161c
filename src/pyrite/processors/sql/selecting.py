"""The statements of read_sql: its rows, and the keys that divide them into equal parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Text,
    TextClause,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.sql.selectable import FromClause
from sqlalchemy.types import NullType

from pyrite.errors import ProcessorError
from pyrite.processors.sql.queries import bound, is_query
from pyrite.processors.sql.ranges import KeyRange
from pyrite.processors.sql.tables import found_table, missing_columns


@dataclass(frozen=True, slots=True)
class Rows:
    """What is read, as a part of statements."""

    source: FromClause
    columns: Sequence[ColumnElement[Any]]
    key: ColumnElement[Any] | None
    parameters: Mapping[str, Any]
    plain: TextClause | None = None
    """The query itself, if there is no key, and all of its columns are wanted."""

    @staticmethod
    def of(
        connection: Connection,
        what: str,
        vertex: str,
        *,
        key: str | None,
        columns: Sequence[str] | None,
        parameters: Mapping[str, Any],
    ) -> Rows:
        if not is_query(what):
            table = found_table(connection, what, vertex)
            wanted = [*(columns or ()), *([key] if key else ())]
            if missing := missing_columns(table, wanted):
                raise ProcessorError(
                    f"vertex '{vertex}' reads column '{missing[0]}' of table '{what}', which has "
                    f"no such column; it has: {', '.join(table.columns.keys())}"
                )
            chosen = [table.c[name] for name in columns] if columns else list(table.c)
            return Rows(table, chosen, table.c[key] if key else None, {})
        query, values = bound(what, parameters, connection.dialect.name)
        named = query.columns(*([column(key)] if key else ())).subquery("pyrite_rows")
        chosen_of_query: list[ColumnElement[Any]] = (
            [column(name) for name in columns] if columns else [literal_column("*")]
        )
        plain = None if columns or key else query
        return Rows(named, chosen_of_query, column(key) if key else None, values, plain)

    def count(self, connection: Connection) -> int:
        counted = select(func.count()).select_from(self.source)
        count: int = connection.execute(counted, self.parameters).scalar_one()
        return count

    def boundaries(self, connection: Connection, count: int) -> list[Any]:
        """Keys between which there are about equally many rows: the first of each of `count` parts,
        except for the first part. They are as the database writes them, not as Python does: what
        the database has put in order need not be in order after it was converted."""
        assert self.key is not None
        kept = _as_kept(self.key, connection.dialect.name)
        numbered = (
            select(
                kept.label("pyrite_key"),
                (func.row_number().over(order_by=self.key) - 1).label("pyrite_number"),
                func.count().over().label("pyrite_count"),
            )
            .select_from(self.source)
            .where(self.key.is_not(None))
            .subquery("pyrite_numbered")
        )
        number, all = numbered.c.pyrite_number, numbered.c.pyrite_count
        first = select(numbered.c.pyrite_key).where(number > 0, (number * count) % all < count)
        rows = connection.execute(first.order_by(number), self.parameters)
        return [row[0] for row in rows]

    def blocks(
        self, connection: Connection, range: KeyRange, size: int, vertex: str
    ) -> Iterator[list[Any]]:
        """The rows of a range as dicts, so many at a time. The server keeps the others."""
        streamed = connection.execution_options(stream_results=True, max_row_buffer=size)
        with streamed.execute(self._within(range), self.parameters) as result:
            names = list(map(str, result.keys()))  # SQLAlchemy has a str of its own
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ProcessorError(
                    f"the query of vertex '{vertex}' has two columns named '{twice}'; give one of "
                    f"them another name: AS other_{twice}"
                )
            for rows in result.partitions(size):
                yield [dict(zip(names, row)) for row in rows]

    def _within(self, range: KeyRange) -> Executable:
        if self.plain is not None:
            return self.plain
        statement = select(*self.columns).select_from(self.source)
        if self.key is None:
            return statement
        # A task that runs again must read the rows in the same order.
        statement = statement.order_by(self.key)
        if range.has_all:
            return statement
        if range.is_null:
            return statement.where(self.key.is_(None))
        # Without a type, a bound gets to the database as it has come from there.
        key = type_coerce(self.key, NullType())
        if range.low is not None:
            statement = statement.where(key >= _bound("pyrite_low", range.low))
        if range.high is not None:
            statement = statement.where(key < _bound("pyrite_high", range.high))
        return statement


def _as_kept(key: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """A key that `_bound` gives back to the database unchanged. All types of PostgreSQL have a text
    from which it makes the same value again."""
    return cast(key, Text()) if dialect == "postgresql" else type_coerce(key, NullType())


def _bound(name: str, value: Any) -> ColumnElement[Any]:
    """The database gives it the type of the column."""
    return bindparam(name, value, type_=NullType())
