"""Access to the file of the maps and lists: connections, each used by one thread at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Protocol

from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.durable.collections.tables import SCHEMA, Added, add
from pyrite.durable.folder.database import PATIENCE, Database
from pyrite.forks import repair_after_fork

APPLICATION: Final = 0x50794331
PRAGMAS: Final = ("wal_autocheckpoint = 2000", "cache_size = -32768")
"""Entries with random keys change the same pages again and again, so 32 MB of them are collected in
the write-ahead log before they go into the file, and kept in memory."""

_of_parent: list[list[Database]] = []
"""Connections that a forked child must neither use nor close: SQLite would break the locks of its
parent."""


class Access(Protocol):
    """What maps and lists need. `of` says what it is about, for messages."""

    def reading(self, of: str) -> AbstractContextManager[Connection]:
        """All that is read within shows one moment."""

    def writing(self, of: str) -> AbstractContextManager[Connection]:
        """All that is written within is done in one step, or not at all if it raises."""

    def add(self, added: Added) -> None: ...


class FileAccess:
    def __init__(self, file: Path, *, patience: float = PATIENCE) -> None:
        self._file = file
        self._patience = patience
        self._parent: int | None = None
        """The process that has the file open and that this process was forked from."""
        self._free: list[Database] = []
        self._opened: list[Database] = []
        repair_after_fork(self)

    def after_fork(self) -> None:
        if self._opened:
            self._parent = os.getppid()
            _of_parent.append(self._opened)
            self._free, self._opened = [], []

    @contextmanager
    def reading(self, of: str) -> Iterator[Connection]:
        with self._lent(of) as database, database.reading() as rows:
            yield rows

    @contextmanager
    def writing(self, of: str) -> Iterator[Connection]:
        with self._lent(of) as database, database.writing() as rows:
            yield rows

    def add(self, added: Added) -> None:
        with self.writing(added.of) as rows:
            add(rows, added)

    def close(self) -> None:
        while self._free:
            database = self._free.pop()
            self._opened.remove(database)
            database.close()

    @contextmanager
    def _lent(self, of: str) -> Iterator[Database]:
        try:
            database = self._taken()
            try:
                yield database
            finally:
                self._free.append(database)
        except _FileUnusable as error:
            raise CollectionsUnavailable(f"{of} is not available: {error}") from error.__cause__

    def _taken(self) -> Database:
        try:
            return self._free.pop()
        except IndexError:
            return self._open()

    def _open(self) -> Database:
        if self._parent is not None:
            raise _FileUnusable(
                f"process {self._parent} had {self._file} open when it forked this process, and "
                "SQLite files cannot be used by both; start processes with spawn instead of fork, "
                "and open the folder there"
            )
        database = Database(
            self._file,
            SCHEMA,
            application=APPLICATION,
            error=_FileUnusable,
            patience=self._patience,
        )
        with database.reading() as rows:
            for pragma in PRAGMAS:
                rows.execute(f"PRAGMA {pragma}")
        self._opened.append(database)
        return database


class _FileUnusable(CollectionsUnavailable):
    """What the database says; whoever asked adds what it was about."""
