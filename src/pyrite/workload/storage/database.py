"""The SQLite database of a store: how it is opened, and its transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Opens a database that several processes write to, and creates its tables if they are
    missing. If that fails, the connection is closed before the error is raised."""
    database = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.executescript(schema)
    except BaseException:
        database.close()
        raise
    return database


class transaction:
    """A transaction that takes SQLite's write lock at its begin. A transaction that begins with a
    read can fail to get the lock later."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("begin immediate")

    def __exit__(self, kind: object, error: object, where: object) -> None:
        self._database.execute("commit" if kind is None else "rollback")
