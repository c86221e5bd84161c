"""The nodes as rows of SQLite, within a transaction of the caller's. Each change leaves a row in
the table of changes, which watchers read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pyrite.durable.store.limits import encoded, parent_of
from pyrite.durable.store.store import StoreError
from pyrite.durable.store.watches import Change

CHANGES_KEPT: Final = 20_000
TRIM_EVERY: Final = 1_000

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS nodes (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, data TEXT NOT NULL, owner TEXT
);
CREATE INDEX IF NOT EXISTS nodes_by_parent ON nodes (parent, path);
CREATE INDEX IF NOT EXISTS nodes_by_owner ON nodes (owner, path) WHERE owner IS NOT NULL;
CREATE TABLE IF NOT EXISTS changes (
    sequence INTEGER PRIMARY KEY, path TEXT NOT NULL, came_or_went INTEGER NOT NULL
)
"""


class Row(NamedTuple):
    path: str
    data: str
    owner: str | None


def node(connection: sqlite3.Connection, path: str) -> list[Row]:
    return _rows(connection, "path = ?", path)


def children(connection: sqlite3.Connection, path: str) -> list[Row]:
    return _rows(connection, "parent = ?", path)


def below(connection: sqlite3.Connection, path: str) -> list[Row]:
    """The node itself and all below it. The character after the slash is 0."""
    prefix = path.rstrip("/")
    return _rows(
        connection, "path = ? OR (path > ? AND path < ?)", path, f"{prefix}/", f"{prefix}0"
    )


def owned(connection: sqlite3.Connection) -> list[Row]:
    """All ephemeral nodes."""
    return _rows(connection, "owner IS NOT NULL")


def last_change(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(sequence), 0) FROM changes").fetchone()[0])


def changes_after(connection: sqlite3.Connection, sequence: int) -> list[Change] | None:
    """None if some of them are not kept any more."""
    first = connection.execute("SELECT min(sequence) FROM changes").fetchone()[0]
    if first is not None and first > sequence + 1:
        return None
    sql = "SELECT sequence, path, came_or_went FROM changes WHERE sequence > ? ORDER BY sequence"
    return [Change(*row) for row in connection.execute(sql, (sequence,))]


class Writer:
    """Writes within one transaction. A node whose owner is dead is not there."""

    def __init__(self, connection: sqlite3.Connection, is_alive: Callable[[str], bool]) -> None:
        self._connection = connection
        self._is_alive = is_alive

    def find(self, path: str) -> Row | None:
        rows = node(self._connection, path)
        if rows and rows[0].owner is not None and not self._is_alive(rows[0].owner):
            self.bury([rows[0].owner])
            return None
        return rows[0] if rows else None

    def create(self, path: str, data: str, owner: str | None = None) -> bool:
        encoded(path, data)
        if self.find(path) is not None:
            return False
        parent = parent_of(path)
        if parent != "/":
            above = self.find(parent)
            if above is None:
                self.create(parent, "")
            elif above.owner is not None:
                raise StoreError(f"the node {path} cannot be below {parent}, which is ephemeral")
        row = (path, parent, data, owner)
        self._connection.execute("INSERT INTO nodes VALUES (?, ?, ?, ?)", row)
        self._changed([path], came_or_went=True)
        return True

    def set(self, path: str, data: str) -> bool:
        encoded(path, data)
        if self.find(path) is None:
            return False
        self._connection.execute("UPDATE nodes SET data = ? WHERE path = ?", (data, path))
        self._changed([path], came_or_went=False)
        return True

    def put(self, path: str, data: str) -> None:
        if not self.set(path, data):
            self.create(path, data)

    def delete(self, path: str) -> None:
        self._delete([row.path for row in below(self._connection, path)])

    def bury(self, owners: Iterable[str]) -> None:
        """Deletes the nodes of sessions that have ended."""
        for owner in owners:
            self._delete([row.path for row in _rows(self._connection, "owner = ?", owner)])

    def next_number(self) -> int:
        """Higher than all numbers so far, if a change follows."""
        return last_change(self._connection) + 1

    def _delete(self, paths: list[str]) -> None:
        self._connection.executemany("DELETE FROM nodes WHERE path = ?", [(p,) for p in paths])
        self._changed(paths, came_or_went=True)

    def _changed(self, paths: list[str], *, came_or_went: bool) -> None:
        for path in paths:
            sql = "INSERT INTO changes (path, came_or_went) VALUES (?, ?)"
            sequence = self._connection.execute(sql, (path, came_or_went)).lastrowid or 0
            if sequence % TRIM_EVERY == 0:
                trim = "DELETE FROM changes WHERE sequence <= ?"
                self._connection.execute(trim, (sequence - CHANGES_KEPT,))


def _rows(connection: sqlite3.Connection, where: str, *values: str) -> list[Row]:
    sql = f"SELECT path, data, owner FROM nodes WHERE {where} ORDER BY path"
    return [Row(*row) for row in connection.execute(sql, values)]
