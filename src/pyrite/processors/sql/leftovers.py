"""Staging tables that jobs have left whose process was killed: the next job that writes there drops
them. Each has a mark that says whose it is. A table is dropped only if its process ran on this
machine and is gone; that of a durable job, which outlives its processes, is left alone."""

from __future__ import annotations

import glob
import json
import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, MetaData, Table, text
from sqlalchemy.exc import SQLAlchemyError

from pyrite.processors.files.manifest import Owner

logger = logging.getLogger("pyrite.sql")


def mark_table(table: Table, owner: Owner) -> Table:
    """For PostgreSQL: the table with a comment that says whose it is."""
    table.comment = json.dumps(asdict(owner))
    return table


def drop_dead_tables(connection: Connection, schema: str | None, prefix: str) -> None:
    """For PostgreSQL: in a schema, those whose names begin with the prefix."""
    found = connection.execute(
        text(
            "SELECT relname, obj_description(pg_class.oid, 'pg_class') FROM pg_class "
            "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind = 'r' "
            "AND nspname = coalesce(:schema, current_schema()) AND starts_with(relname, :prefix)"
        ),
        {"schema": schema, "prefix": prefix},
    )
    for name, mark in found.all():
        if _is_dead(mark):
            quoted = connection.dialect.identifier_preparer.format_table(
                Table(name, MetaData(), schema=schema)
            )
            try:
                with connection.begin_nested():
                    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted}")
            except SQLAlchemyError:
                logger.debug("could not drop %s, which a job has left", quoted, exc_info=True)


def mark_file(raw: Any, owner: Owner) -> None:
    """For SQLite: several sinks of a job share the file."""
    raw.execute("CREATE TABLE IF NOT EXISTS pyrite_owner (mark TEXT)")
    raw.execute("INSERT INTO pyrite_owner VALUES (?)", (json.dumps(asdict(owner)),))


def drop_dead_files(prefix: str, *, but: str) -> None:
    """For SQLite: those whose paths begin with the prefix, except for one."""
    for path in glob.glob(f"{glob.escape(prefix)}*"):
        if path == but or path.endswith(("-wal", "-shm")):
            continue
        try:
            with closing(sqlite3.connect(path)) as raw:
                (mark,) = raw.execute("SELECT mark FROM pyrite_owner").fetchone()
            if _is_dead(mark):
                remove_database(path)
        except (sqlite3.Error, TypeError, OSError):
            logger.debug("could not remove %s, which a job has left", path, exc_info=True)


def remove_database(path: str) -> None:
    """Removes a file of SQLite, with those that belong to it. May be repeated."""
    for end in ("", "-wal", "-shm"):
        if os.path.exists(path + end):
            os.unlink(path + end)


def _is_dead(mark: str | None) -> bool:
    try:
        owner = Owner(**json.loads(mark or ""))
    except (ValueError, TypeError):
        return False
    return not owner.is_durable and owner.process != os.getpid() and owner.has_ended
