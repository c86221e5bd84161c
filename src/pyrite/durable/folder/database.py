"""A SQLite file of the folder, which many processes use at once: how it is opened, read and
written, and what its errors mean to a user."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyrite.errors import PyriteError

BUSY_SECONDS: Final = 30.0
"""How long to wait for others who write. A write takes milliseconds."""
FORMAT: Final = 1


class Database:
    """`error` is what it raises. `WAL` and `synchronous=NORMAL`: what was committed survives any
    death of processes. After a power cut the last commits may be missing."""

    def __init__(
        self, file: Path, schema: str, error: type[PyriteError], *, busy: float = BUSY_SECONDS
    ) -> None:
        self._file = file
        self._error = error
        self._busy = busy
        with self._explained():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                file, timeout=busy, isolation_level=None, check_same_thread=False
            )
            try:
                self._begin_to_use(schema)
            except BaseException:
                self._connection.close()
                raise
            self._inode = os.stat(file).st_ino

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """All that is read within shows one moment."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is written within is done in one step, or not at all if it raises."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def version(self) -> int:
        """Another number whenever another connection has written. It costs microseconds."""
        with self._explained():
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def is_in_place(self) -> bool:
        """Whether the file that is in use is still where others look for it."""
        try:
            return os.stat(self._file).st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self._connection.close()

    def _begin_to_use(self, schema: str) -> None:
        # SQLite does not wait when two processes switch to WAL at once.
        give_up = time.monotonic() + self._busy
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.005)
        self._connection.execute("PRAGMA synchronous=NORMAL")
        with self.writing() as connection:
            found = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if found not in (0, FORMAT):
                raise self._error(
                    f"{self._file} was written by another version of Pyrite (format {found}, this"
                    f" one writes {FORMAT}); use that version, or another folder"
                )
            if found == 0:
                for statement in schema.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={FORMAT}")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk may have ended it already
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(
                f"the folder {self._file.parent} cannot be made or used: {error}; choose a folder"
                " that you can write to"
            ) from error
        except sqlite3.Error as error:
            raise self._error(f"{self._file} {self._why(error)}") from error

    def _why(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
        match code:
            case sqlite3.SQLITE_FULL:
                return "cannot grow: the disk is full; nothing was changed. Make room and try again"
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return (
                    f"has been locked by another process for more than {self._busy:g} s; end that"
                    " process, or whatever copies or backs up the folder"
                )
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                return f"is not a database of Pyrite, or is damaged ({error}); use another folder"
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return f"cannot be written ({error}); choose a folder that you can write to"
            case sqlite3.SQLITE_MISUSE:
                return f"cannot be used any more: {error}"
        return f"cannot be used ({error}); look at the disk that it is on"
