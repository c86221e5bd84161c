"""Where the rows of a job are until it completes: in a staging table that the job makes.

In PostgreSQL the table is next to its target. For SQLite it is in a file of its own next to the
database, because one process that writes to a file keeps all others from it. Each row has the tag
of the attempt that wrote it: a Spark task may run twice, and the commit takes the rows of one
attempt only.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, Text, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable, SetTableComment

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.processors.files.manifest import Owner
from pyrite.processors.sql.address import Address
from pyrite.processors.sql.databases import ATTACHED, engine_at
from pyrite.processors.sql.leftovers import (
    drop_dead_files,
    drop_dead_tables,
    mark_file,
    mark_table,
    remove_database,
)
from pyrite.processors.sql.tables import name_and_schema

if TYPE_CHECKING:
    from pyrite.processors.sql.writing import WriteSql

PREFIX = "pyrite_staging_"
TAG = "pyrite_tag"
ROW = "pyrite_row"
FIELDS = "pyrite_fields"
OWN = (TAG, ROW, FIELDS)


@dataclass(frozen=True, slots=True)
class Staged:
    """What a writer has put into the staging table: how many rows have which fields."""

    tag: str
    rows: dict[str, int] = field(default_factory=dict)
    """By the fields, as `fields_of` writes them."""


def fields_of(columns: list[str]) -> str:
    return "\n".join(columns)


def columns_of(fields: str) -> list[str]:
    return fields.split("\n")


class Staging:
    """The staging table of one sink in one execution."""

    def __init__(self, sink: WriteSql, context: MetaSupplierContext, url: URL) -> None:
        of = f"{context.execution_id}/{context.vertex_name}".encode()
        self.name = f"{PREFIX}{hashlib.blake2b(of, digest_size=8).hexdigest()}"
        self.url = url
        self._context = context
        self.vertex = context.vertex_name
        self.schema = name_and_schema(sink.table)[1]

    @staticmethod
    def of(sink: WriteSql, context: MetaSupplierContext) -> Staging:
        url = checked_to_write(sink.address, context.vertex_name)
        kind = InFile if url.get_backend_name() == "sqlite" else InDatabase
        return kind(sink, context, url)

    def table(self, target: Table, schema: str | None) -> Table:
        """With the columns of the target, and its own."""
        return Table(
            self.name,
            MetaData(),
            Column(TAG, Text, primary_key=True),
            Column(ROW, BigInteger, primary_key=True, autoincrement=False),
            Column(FIELDS, Text),
            *(Column(column.name, column.type) for column in target.columns),
            schema=schema,
            sqlite_with_rowid=False,
        )

    def create(self, target: Table, *, exists: bool, is_durable: bool) -> None:
        """`exists` says whether the target is there already."""
        raise NotImplementedError

    def exists(self, connection: Connection) -> bool:
        """`connection` is that of the commit."""
        raise NotImplementedError

    def drop(self) -> None:
        """May be repeated."""
        raise NotImplementedError

    def connect(self) -> Connection:
        """For those who write rows. Raises ProcessorError if the staging table is gone."""
        raise NotImplementedError

    @property
    def schema_to_write(self) -> str | None:
        raise NotImplementedError

    @property
    def schema_to_commit(self) -> str | None:
        raise NotImplementedError

    def drop_in(self, connection: Connection) -> None:
        """Called in the transaction of the commit, to drop what can be dropped in it."""

    def finish(self) -> None:
        """Called after that transaction, for the rest."""


class InDatabase(Staging):
    def create(self, target: Table, *, exists: bool, is_durable: bool) -> None:
        staging = self.table(target, self.schema)
        with engine_at(self.url).begin() as connection:
            drop_dead_tables(connection, self.schema, PREFIX)
            quoted = connection.dialect.identifier_preparer
            # A table that is not logged is empty after a crash of the server, and then the numbers
            # of rows do not agree.
            kind = "TABLE" if is_durable else "UNLOGGED TABLE"
            if exists:
                own = f"'' :: text AS {TAG}, 0 :: bigint AS {ROW}, '' :: text AS {FIELDS}"
                name, source = quoted.format_table(staging), quoted.format_table(target)
                connection.exec_driver_sql(
                    f"CREATE {kind} {name} AS SELECT {own}, pyrite_target.* "
                    f"FROM {source} AS pyrite_target WITH NO DATA"
                )
                connection.exec_driver_sql(f"ALTER TABLE {name} ADD PRIMARY KEY ({TAG}, {ROW})")
            else:
                made = str(CreateTable(staging).compile(dialect=connection.dialect))
                connection.exec_driver_sql(made.replace("CREATE TABLE", f"CREATE {kind}", 1))
            owner = Owner.of(self._context, is_durable=is_durable)
            connection.execute(SetTableComment(mark_table(staging, owner)))

    def exists(self, connection: Connection) -> bool:
        return inspect(connection).has_table(self.name, schema=self.schema)

    def drop(self) -> None:
        with engine_at(self.url).begin() as connection:
            # A writer of a task that is being killed may still have the table.
            connection.execute(text("SET LOCAL lock_timeout = '30s'"))
            self.drop_in(connection)

    def drop_in(self, connection: Connection) -> None:
        table = Table(self.name, MetaData(), schema=self.schema)
        name = connection.dialect.identifier_preparer.format_table(table)
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")

    def connect(self) -> Connection:
        return engine_at(self.url).connect()

    @property
    def schema_to_write(self) -> str | None:
        return self.schema

    @property
    def schema_to_commit(self) -> str | None:
        return self.schema


class InFile(Staging):
    """All sinks of an execution that write to the same database share the file."""

    schema_to_write = None
    schema_to_commit = ATTACHED

    def __init__(self, sink: WriteSql, context: MetaSupplierContext, url: URL) -> None:
        super().__init__(sink, context, url)
        self.path = f"{url.database}-pyrite-{context.execution_id}"

    def create(self, target: Table, *, exists: bool, is_durable: bool) -> None:
        drop_dead_files(f"{self.url.database}-pyrite-", but=self.path)
        engine = engine_at(self.url.set(database=self.path), must_exist=False)
        try:
            with engine.connect() as connection:
                raw: Any = connection.connection.dbapi_connection
                # Others can read while one writes, and a process that is killed does no harm.
                raw.execute("PRAGMA journal_mode=WAL")
                raw.execute(f"PRAGMA user_version={int(is_durable)}")
                mark_file(raw, Owner.of(self._context, is_durable=is_durable))
            with engine.begin() as connection:
                self.table(target, None).create(connection)
        except SQLAlchemyError:
            self.drop()
            raise

    def exists(self, connection: Connection) -> bool:
        return os.path.exists(self.path)

    def finish(self) -> None:
        self.drop()

    def drop(self) -> None:
        remove_database(self.path)

    def connect(self) -> Connection:
        if not os.path.exists(self.path):
            raise ProcessorError(
                f"vertex '{self.vertex}' cannot write to '{self.path}', which was made when the "
                "job began: either the job has ended, or the folder is not shared by all machines "
                "that the job runs on"
            )
        url = self.url.set(database=self.path)
        connection = engine_at(url, begin="BEGIN IMMEDIATE").connect()
        raw: Any = connection.connection.dbapi_connection
        if not raw.execute("PRAGMA user_version").fetchone()[0]:
            raw.execute("PRAGMA synchronous=OFF")  # the job does not survive a crash of the system
        return connection


def checked_to_write(address: Address, vertex: str) -> URL:
    url = address.resolved()
    if url.get_backend_name() not in ("postgresql", "sqlite"):
        raise ProcessorError(
            f"vertex '{vertex}' cannot write to {address}: write_sql() writes to PostgreSQL and "
            "SQLite; write to other databases with write_spark() and Spark's JDBC"
        )
    return url
