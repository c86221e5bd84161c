"""read_sql: the rows of a table or a query, as a source."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.checks import checked_count
from pyrite.processors.flat import Flat
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.ready_made import Source
from pyrite.processors.sql.address import Address, checked_address
from pyrite.processors.sql.arguments import checked_columns, checked_table
from pyrite.processors.sql.ranges import KeyRange, ranges_between


def read_sql(
    url: Any,
    query: str,
    *,
    key: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    batch_size: int = 1000,
) -> Source[dict[str, Any]]:
    """Emits each row of a query, or of a table, as a dict by column.

    `url` is a URL of SQLAlchemy, such as `postgresql://user@host/name` or `sqlite:///shop.db`;
    `${NAME}` in it is a variable of the environment of the process that connects. `query` is a
    SELECT, or the name of a table, such as `orders` or `sales.orders`; `parameters` has the values
    for `:name` in a query, and a list of them for `in :name`.

    With `key`, a column of the result, all processors of the vertex read at the same time, each
    other ranges of this column; without it, one of them reads all. Any type that the database can
    order will do; rows without a key are read as well. An index on the key makes this fast. With
    `columns` only these are read. A processor holds `batch_size` rows at a time.

    >>> import sqlite3
    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     with sqlite3.connect(f"{folder}/shop.db") as db:
    ...         made = db.execute("create table prices as select 1 as id, 2.5 as price")
    ...     db.close()
    ...     prices = p.read_sql(f"sqlite:///{folder}/shop.db", "select * from prices")
    ...     Pipeline().read_from(prices).collect()
    [{'id': 1, 'price': 2.5}]
    """
    address = checked_address("read_sql", url)
    checked_table("read_sql", query, "a SELECT, or the name of a table")
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidDAG(f"key of read_sql() must be the name of a column; got {shorten(key)}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidDAG(
            f"parameters of read_sql() must be a dict by name; got {shorten(parameters)}"
        )
    from pyrite.processors.sql.queries import is_query, without_value

    if parameters and not is_query(query):
        raise InvalidDAG(f"read_sql() reads the table '{query}', so it can have no parameters")
    if is_query(query) and (missing := without_value(query, parameters or ())):
        name = missing[0]
        raise InvalidDAG(
            f"the query of read_sql() has a parameter :{name} without a value; give it one: "
            f"parameters={{'{name}': ...}}; or write \\:{name} if it is no parameter"
        )
    return Source(
        ReadSql(
            address,
            query,
            key,
            tuple(sorted((parameters or {}).items())),
            checked_columns("read_sql", columns),
            checked_count("read_sql", "batch_size", batch_size, least=1),
        )
    )


@dataclass(frozen=True, slots=True)
class ReadSql(ReadStep):
    address: Address
    query: str
    key: str | None
    parameters: tuple[tuple[str, Any], ...] = field(repr=False)
    columns: tuple[str, ...] | None
    batch_size: int
    ranges: tuple[KeyRange, ...] | None = None
    """The ranges, where they were looked for before: all readers must have the same."""
    may_hold_none = False
    may_block = True
    looks = True

    def without_secrets(self) -> ReadSql:
        return replace(self, address=self.address.without_password())

    def found(self, vertex: str, readers: int) -> ReadSql:
        """The same, with ranges of the key for so many readers."""
        ranges = (KeyRange(),) if readers == 1 else self._ranges(vertex, lambda *_: readers)
        return replace(self, ranges=ranges)

    def splits(self, vertex: str, most_rows: int) -> tuple[KeyRange, ...]:
        """All rows, in ranges of about so many rows."""
        return self._ranges(
            vertex, lambda rows, connection: -(-rows.count(connection) // most_rows)
        )

    def _ranges(self, vertex: str, count: Callable[[Any, Any], int]) -> tuple[KeyRange, ...]:
        if self.key is None:
            return (KeyRange(),)
        from pyrite.processors.sql.databases import connected
        from pyrite.processors.sql.faults import explained

        with (
            explained(self.address, vertex, f"divide what it reads by '{self.key}', from"),
            connected(self.address) as connection,
        ):
            rows = self._rows(connection, vertex)
            wanted = count(rows, connection)
            return ranges_between(rows.boundaries(connection, wanted) if wanted > 1 else ())

    def reader(self, vertex: str) -> Callable[[KeyRange], Iterable[list[Any]]]:
        """Reads a split."""
        return partial(_read_split, self, vertex)

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        return Flat.over(self._blocks_of(context))

    def read(self, ranges: Iterable[KeyRange], vertex: str) -> Generator[list[Any], None, None]:
        """The rows of the ranges, in lists. Connects when the first is wanted."""
        from pyrite.processors.sql.databases import connected
        from pyrite.processors.sql.faults import explained

        with (
            explained(self.address, vertex, "read from"),
            connected(self.address) as connection,
        ):
            rows = self._rows(connection, vertex)
            for each in ranges:
                yield from rows.blocks(connection, each, self.batch_size, vertex)

    def _blocks_of(self, context: ProcessorContext) -> Generator[list[Any], None, None]:
        ranges = self.ranges or self.found_once(context).ranges
        own = ranges[context.global_index :: context.total_parallelism]
        if own:
            yield from self.read(own, context.vertex_name)

    def _rows(self, connection: Any, vertex: str) -> Any:
        from pyrite.processors.sql.selecting import Rows

        return Rows.of(
            connection,
            self.query,
            vertex,
            key=self.key,
            columns=self.columns,
            parameters=dict(self.parameters),
        )


def _read_split(step: ReadSql, vertex: str, split: KeyRange) -> Iterable[list[Any]]:
    return step.read([split], vertex)
