"""How the rows of one execution get into their table: all of them in one transaction, or none.

The execution makes a staging table before any writer opens. The commit moves the rows of the
attempts that count to the target, in a transaction which stays open until all sinks of the job are
ready. A durable job also leaves a record of its commit: if its process dies before it has reported
the end of the job, the next one finds that the rows are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    delete,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.loops.steps import BadItem, Commit
from pyrite.processors.sql.databases import connected, engine_at, is_missing_file
from pyrite.processors.sql.faults import cause_of, explained, reason
from pyrite.processors.sql.moving import Moving, adding, updating
from pyrite.processors.sql.staging import TAG, Staged, Staging
from pyrite.processors.sql.tables import (
    found_table,
    has_table,
    is_unique,
    missing_columns,
    new_table,
)
from pyrite.processors.sql.transactions import Transaction

if TYPE_CHECKING:
    from pyrite.processors.sql.writing import WriteSql

RECORDS = "pyrite_commits"
"""The table with the commits of durable jobs."""
REMEMBERED = timedelta(days=30)


def target_of(sink: WriteSql, vertex: str, *, is_checked: bool = False) -> tuple[Table, bool]:
    """The table that a sink writes to, and whether it exists. Does not make a file for SQLite. With
    `is_checked`, it is known that the rows can be written."""
    url = sink.address.resolved()
    if sink.create is not None and is_missing_file(url):
        return new_table(sink.table, dict(sink.create), sink.key, url.get_backend_name()), False
    with connected(sink.address) as connection:
        return _target_in(connection, sink, vertex, is_checked=is_checked)


def _target_in(
    connection: Connection, sink: WriteSql, vertex: str, *, is_checked: bool
) -> tuple[Table, bool]:
    if sink.create is not None and not has_table(connection, sink.table):
        return new_table(sink.table, dict(sink.create), sink.key, connection.dialect.name), False
    table = found_table(connection, sink.table, vertex)
    if is_checked:
        return table, True
    if missing := missing_columns(table, [*(sink.columns or ()), *(sink.key or ())]):
        raise ProcessorError(
            f"vertex '{vertex}' writes column '{missing[0]}' of table '{sink.table}', which has no "
            f"such column; it has: {', '.join(table.columns.keys())}"
        )
    if sink.mode == "upsert" and not is_unique(connection, table, sink.key or ()):
        names = ", ".join(sink.key or ())
        raise ProcessorError(
            f"vertex '{vertex}' cannot update rows of table '{sink.table}' by ({names}), because "
            "two rows may have the same values there; make these columns the primary key, or "
            f"create a unique index: CREATE UNIQUE INDEX {sink.table}_key ON {sink.table} ({names})"
        )
    return table, True


class SqlCommit(Commit):
    """One execution's staging table, and the transaction that moves its rows to the target."""

    def __init__(
        self,
        sink: WriteSql,
        context: MetaSupplierContext,
        *,
        is_durable: bool = False,
        is_resumed: bool = False,
    ) -> None:
        self._sink = sink
        self._vertex = context.vertex_name
        self._execution = context.execution_id
        self._is_durable = is_durable
        with explained(sink.address, self._vertex, f"write to table '{sink.table}' of"):
            self._staging = Staging.of(sink, context)
            self._transaction = Transaction.of(self._staging, self._execution, sink.address.place())
            if not is_resumed:
                self._begin()
        if sink.mode == "replace":
            self._transaction.replaces(sink, self._vertex)

    def commit(self, reports: Sequence[Staged | None]) -> None:
        try:
            self._commit([report for report in reports if report is not None])
        except SQLAlchemyError as error:
            said = reason(error, self._sink.address)
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot write its rows to table '{self._sink.table}' of "
                f"{self._sink.address}: {said}"
            ) from cause_of(error)

    def seal(self) -> None:
        with explained(self._sink.address, self._vertex, "commit its rows to"):
            self._transaction.commit()

    def undo(self) -> None:
        self._transaction.end()

    def finish(self) -> None:
        self._transaction.end()
        self._staging.finish()

    def discard(self) -> None:
        self._transaction.end()
        self._staging.drop()

    def let_go(self) -> None:
        self._transaction.end()

    def _begin(self) -> None:
        target, exists = target_of(self._sink, self._vertex)
        if self._is_durable:
            self._make_records()
        self._staging.create(target, exists=exists, is_durable=self._is_durable)

    def _make_records(self) -> None:
        records = _records(self._staging.schema)
        engine = engine_at(self._staging.url, must_exist=False)
        try:
            records.create(engine, checkfirst=True)
        except SQLAlchemyError:
            if not inspect(engine).has_table(RECORDS, schema=records.schema):
                raise  # otherwise another job has made it at the same moment

    def _commit(self, staged: Sequence[Staged]) -> None:
        transaction, sink = self._transaction, self._sink
        if self._is_durable and self._is_recorded(transaction.connection):
            return
        connection = transaction.connection
        if not self._staging.exists(connection):
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot find its staging table '{self._staging.name}', "
                "which had the rows that the job has written; somebody has removed it; run the job "
                "again"
            )
        target, exists = _target_in(connection, sink, self._vertex, is_checked=True)
        if not exists:
            target.create(connection)
        rows = self._staging.table(target, self._staging.schema_to_commit)
        self._check(connection, rows, staged)
        for other, vertex in transaction.to_delete():
            replaced, is_there = _target_in(connection, other, vertex, is_checked=True)
            if is_there:
                connection.execute(delete(replaced))
        for moving in self._movings(connection, rows, target, staged):
            self._move(connection, moving)
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        self._staging.drop_in(connection)

    def _check(self, connection: Connection, rows: Table, staged: Iterable[Staged]) -> None:
        """Raises if rows are missing."""
        counts = {report.tag: sum(report.rows.values()) for report in staged}
        counted = select(func.count()).select_from(rows).where(rows.c[TAG].in_(counts))
        found = connection.execute(counted).scalar_one()
        if found != sum(counts.values()):
            raise ProcessorError(
                f"vertex '{self._vertex}' wrote {sum(counts.values())} rows, but its staging table "
                f"'{self._staging.name}' has {found} of them: the database has lost them, as it "
                "does when its server crashes; run the job again"
            )

    def _movings(
        self, connection: Connection, rows: Table, target: Table, staged: Sequence[Staged]
    ) -> Iterable[Moving]:
        shapes = sorted({fields for report in staged for fields in report.rows})
        tags = [report.tag for report in staged]
        if not shapes or self._sink.mode != "upsert":
            return adding(rows, target, shapes, tags)
        return updating(connection, rows, target, shapes, tags, self._sink.key or ())

    def _move(self, connection: Connection, moving: Moving) -> None:
        try:
            with connection.begin_nested():
                connection.execute(moving.insert(connection))
        except (IntegrityError, DataError) as error:
            item = moving.refused(connection)
            if item is None:
                raise
            raise BadItem(
                f"vertex '{self._vertex}' cannot write item {shorten(item)} to table "
                f"'{self._sink.table}': {reason(error, self._sink.address)}",
                item,
            ) from cause_of(error)

    def _is_recorded(self, connection: Connection) -> bool:
        """Whether the rows are committed already. If not, the record is added to the transaction;
        another process that does the same meanwhile waits here."""
        records = _records(self._staging.schema)
        kind = postgresql if connection.dialect.name == "postgresql" else sqlite
        now = datetime.now(UTC)
        insert: Any = kind.insert(records).values(
            execution=self._execution, vertex=self._vertex, committed_at=now.isoformat()
        )
        connection.execute(
            delete(records).where(records.c.committed_at < (now - REMEMBERED).isoformat())
        )
        added = insert.on_conflict_do_nothing().returning(records.c.execution)
        return connection.execute(added).first() is None


def _records(schema: str | None) -> Table:
    return Table(
        RECORDS,
        MetaData(),
        Column("execution", Text, primary_key=True),
        Column("vertex", Text, primary_key=True),
        Column("committed_at", Text, nullable=False),
        schema=schema,
    )
