"""write_sql: rows of a table, as a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.checks import checked_count
from pyrite.processors.loops.steps import Commit, Writer, WriteStep
from pyrite.processors.ready_made import Sink
from pyrite.processors.sql.address import Address, checked_address
from pyrite.processors.sql.arguments import checked_columns, checked_table

Mode = Literal["append", "upsert", "replace"]
_MODES = ("append", "upsert", "replace")


def write_sql(
    url: Any,
    table: str,
    *,
    key: str | Sequence[str] | None = None,
    mode: Mode | None = None,
    columns: Sequence[str] | None = None,
    create: Mapping[str, Any] | None = None,
    batch_size: int = 1000,
) -> Sink[Mapping[str, Any]]:
    """Writes dicts to a table of PostgreSQL or SQLite, each as a row.

    `url` is as for `read_sql`. The rows appear in the table all at once when the job has completed,
    in every kind of job; a job that fails changes nothing. Until then they are in a staging table,
    so the user must be allowed to create tables.

    With `key`, one or several columns that the database keeps unique, a row with the same key is
    updated instead of added (`mode="upsert"`); the last item with a key wins. `mode` may also be
    `append`, the default without a key, or `replace`, which deletes all other rows.

    Fields have the names of columns. A column that an item lacks gets its default, and an update
    leaves it alone. With `columns` only these fields are written, and a field that an item lacks is
    NULL. `create` makes the table if it is missing, from the types of its columns, such as
    `{"id": int, "name": str | None}`; `key` is its primary key. Rows are sent `batch_size` at a
    time.

    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     shop = f"sqlite:///{folder}/shop.db"
    ...     pipe = Pipeline()
    ...     rows = pipe.read_from([1, 2]).map(lambda n: {"id": n, "price": n / 4})
    ...     rows.write_to(p.write_sql(shop, "prices", create={"id": int, "price": float}))
    ...     pipe.run()
    ...     Pipeline().read_from(p.read_sql(shop, "prices")).collect()
    [{'id': 1, 'price': 0.25}, {'id': 2, 'price': 0.5}]
    """
    address = checked_address("write_sql", url)
    checked_table("write_sql", table, "the name of a table")
    keys = checked_columns("write_sql", key, argument="key")
    if mode is None:
        mode = "append" if keys is None else "upsert"
    if mode not in _MODES:
        raise InvalidDAG(f"mode of write_sql() must be one of {_MODES}; got {shorten(mode)}")
    if mode == "upsert" and keys is None:
        raise InvalidDAG(
            "write_sql() with mode='upsert' needs key=..., the columns by which it finds the rows "
            "to update"
        )
    names = checked_columns("write_sql", columns)
    if mode == "upsert" and keys and names and not set(keys) <= set(names):
        raise InvalidDAG(f"columns of write_sql() must have the key {keys} among them; got {names}")
    return Sink(
        WriteSql(
            address,
            table,
            mode,
            keys,
            names,
            _checked_create(create, keys, names),
            checked_count("write_sql", "batch_size", batch_size, least=1),
        )
    )


@dataclass(frozen=True, slots=True)
class WriteSql(WriteStep):
    address: Address
    table: str
    mode: Mode
    key: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    create: tuple[tuple[str, Any], ...] | None
    """The types of the columns, if the table may be made."""
    batch_size: int
    commits = True
    may_block = True

    @property
    def takes_text_letters(self) -> bool:
        return dict(self.create or ()).get("item") in (str, str | None)

    def without_secrets(self) -> WriteSql:
        return replace(self, address=self.address.without_password())

    def target(self) -> str:
        place = self.address.place()
        is_sqlite = place.startswith("sqlite:")  # where ORDERS, orders and main.orders are the same
        table = self.table.lower().removeprefix("main.") if is_sqlite else self.table
        return f"table '{table}' of {place}"

    def shares_target(self) -> bool:
        """A sink that replaces all rows would also delete those of another sink."""
        return self.mode != "replace"

    def begin(self, context: MetaSupplierContext) -> Commit:
        from pyrite.processors.sql.committing import SqlCommit

        return SqlCommit(self, context)

    def prepare(self, context: MetaSupplierContext) -> None:
        from pyrite.processors.sql.committing import SqlCommit

        SqlCommit(self, context, is_durable=True).let_go()

    def resume(self, context: MetaSupplierContext) -> Commit:
        from pyrite.processors.sql.committing import SqlCommit

        return SqlCommit(self, context, is_durable=True, is_resumed=True)

    def open(self, context: ProcessorContext) -> Writer:
        from pyrite.processors.sql.rows import RowWriter

        return RowWriter(self, context)


def _checked_create(
    create: Any, key: Sequence[str] | None, columns: Sequence[str] | None
) -> tuple[tuple[str, Any], ...] | None:
    if create is None:
        return None
    if not isinstance(create, Mapping) or not create:
        raise InvalidDAG(
            "create of write_sql() must be a dict from columns to types, such as "
            f"{{'id': int, 'name': str}}; got {shorten(create)}"
        )
    from pyrite.processors.sql.kinds import type_of

    for column, python in create.items():
        if not isinstance(column, str) or not column:
            raise InvalidDAG(f"create of write_sql() has a column named {shorten(column)}")
        type_of(python, column)
    for name in (*(key or ()), *(columns or ())):
        if name not in create:
            raise InvalidDAG(f"create of write_sql() has no column '{name}'; it needs a type")
    return tuple(create.items())
