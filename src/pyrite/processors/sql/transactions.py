"""The transaction in which an execution changes a database: one for all of its sinks that write to
it. So they change it together, and cannot wait for each other."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sqlalchemy import Connection, text

from pyrite.processors.sql import databases
from pyrite.processors.sql.databases import engine_at, is_missing_file
from pyrite.processors.sql.staging import InFile, Staging

if TYPE_CHECKING:
    from pyrite.processors.sql.writing import WriteSql


class Transaction:
    """Begins when its connection is asked for. Any of the sinks that share it may end it."""

    def __init__(self, staging: Staging, execution: str) -> None:
        self._execution = execution
        self._url = staging.url
        self._file = staging.path if isinstance(staging, InFile) else None
        self._connection: Connection | None = None
        self._makes_file = is_missing_file(staging.url)
        self._replacing: list[tuple[WriteSql, str]] = []
        self._has_deleted = False

    @staticmethod
    def of(staging: Staging, execution: str, place: str) -> Transaction:
        """The one that all sinks of an execution share which write to the same place."""
        key = execution, place
        with _LOCK:
            found = _OPEN.get(key)
            if found is None:
                found = _OPEN[key] = Transaction(staging, execution)
            return found

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            has_file = self._file is not None and os.path.exists(self._file)
            engine = engine_at(
                self._url,
                must_exist=False,
                begin="BEGIN IMMEDIATE",
                attach=self._file if has_file else None,
            )
            self._connection = engine.connect()
            self._limit_waiting(self._connection)
        return self._connection

    def _limit_waiting(self, connection: Connection) -> None:
        """Another transaction of the same execution, such as that of another user, may hold what
        this one waits for, and it would do so forever. (For SQLite there is always a limit.)"""
        with _LOCK:
            others = [execution for (execution, _), each in _OPEN.items() if each is not self]
        if connection.dialect.name == "postgresql" and self._execution in others:
            limit = text("SELECT set_config('lock_timeout', :most, true)")
            connection.execute(limit, {"most": f"{databases.BUSY_SECONDS}s"})

    def replaces(self, sink: WriteSql, vertex: str) -> None:
        """Called by each sink that replaces all rows of its table."""
        self._replacing.append((sink, vertex))

    def to_delete(self) -> list[tuple[WriteSql, str]]:
        """The sinks whose tables must be emptied before any rows are moved, and their vertices: the
        last first, because its rows may refer to those of the others. None the second time."""
        has_deleted, self._has_deleted = self._has_deleted, True
        return [] if has_deleted else self._replacing[::-1]

    def commit(self) -> None:
        if self._connection is not None:
            self._connection.commit()
            self._makes_file = False
        self.end()

    def end(self) -> None:
        """Rolls back what is not committed."""
        connection, self._connection = self._connection, None
        self._has_deleted = False
        if connection is not None:
            connection.close()
            if self._makes_file and not is_missing_file(self._url):
                os.unlink(self._url.database or "")


_LOCK = threading.Lock()
_OPEN: WeakValueDictionary[tuple[str, str], Transaction] = WeakValueDictionary()
