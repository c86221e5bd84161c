"""A SQLite file that many processes use at once: how it is opened, how transactions wait for each
other, and what is said when one fails."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 30.0
"""Seconds for which a transaction waits for the others."""
LONGEST_WAL = 64 * 1024 * 1024
COMMITS_PER_LOOK = 64
MOST_FREE_PAGES = 4096
MOST_MOVED_PAGES = 1024
"""16 MB: others wait for a tenth of a second."""


class Database:
    """One connection. `error` makes the exception for a sentence. `synchronous=NORMAL` survives
    any death of processes: what the kernel has been given is not lost with them."""

    def __init__(
        self,
        file: Path,
        schema: str,
        *,
        application: int,
        error: Callable[[str], Exception],
        patience: float = PATIENCE,
    ) -> None:
        self._file = file
        self._wal = f"{file}-wal"
        self._error = error
        self._patience = patience
        self._commits = 0
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as failed:
            raise error(
                f"the folder {file.parent} cannot be made or used: {failed}; choose a folder that"
                " you can write to"
            ) from failed
        with self._explained():
            self.connection = sqlite3.connect(
                file, timeout=0, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare(schema, application)
            self._inode = os.stat(file).st_ino
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self, schema: str, application: int) -> None:
        execute = self.connection.execute
        # 16 kB instead of 4 kB pages: a body of 20 kB is written in two pieces.
        self._when_free("PRAGMA page_size = 16384")
        self._when_free("PRAGMA journal_mode = WAL")
        for pragma in ("synchronous = NORMAL", "wal_autocheckpoint = 512", "temp_store = MEMORY"):
            self._when_free(f"PRAGMA {pragma}")
        with self.writing():
            (found,) = execute("PRAGMA application_id").fetchone()
            (tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
            if found != application and (found or tables):
                raise self._error(
                    f"{self._file} was written by another version of Pyrite, or by another"
                    " program; use another folder, or move the file away"
                )
            if not tables:
                for statement in schema.split(";"):
                    execute(statement)
                execute(f"PRAGMA application_id = {application}")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """What is done inside happens in one step, or not at all if it raises."""
        self._when_free("BEGIN IMMEDIATE")
        with self._explained():
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        self._commits += 1
        if self._commits % COMMITS_PER_LOOK == 0:
            self._keep_the_log_short()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """All that is read inside is of one moment."""
        self._when_free("BEGIN")
        try:
            with self._explained():
                yield self.connection
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def shrink(self) -> None:
        """Gives the room of what was deleted back to the disk, if it is much. The file is written
        anew, so this waits for a time when there is little in it. (SQLite's incremental vacuum
        looks through all free pages for each page: it takes hours for 50 GB.)"""
        free, pages = (
            int(self._when_free(f"PRAGMA {count}").fetchone()[0])
            for count in ("freelist_count", "page_count")
        )
        if free > MOST_FREE_PAGES and pages - free <= MOST_MOVED_PAGES:
            self._when_free("VACUUM")

    def version(self) -> int:
        """A number that changes when another connection has changed something."""
        return int(self._when_free("PRAGMA data_version").fetchone()[0])

    def is_in_place(self) -> bool:
        """Whether the file that is in use is still where others look for it."""
        try:
            return os.stat(self._file).st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self.connection.close()

    def _when_free(self, statement: str) -> sqlite3.Cursor:
        """SQLite itself waits in steps of up to 100 ms, which is too long between transactions of
        less than 1 ms."""
        give_up = time.monotonic() + self._patience
        pause = 0.0001
        with self._explained():
            while True:
                try:
                    return self.connection.execute(statement)
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or time.monotonic() > give_up:
                        raise
                time.sleep(pause * random.random())
                pause = min(pause * 1.5, 0.005)

    def _keep_the_log_short(self) -> None:
        """The automatic checkpoints cannot start the log anew while others write all the time; this
        one lets them wait."""
        try:
            if os.stat(self._wal).st_size > LONGEST_WAL:
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (OSError, sqlite3.Error):
            pass  # the next one tries again

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(f"{self._file} {self._why(error)}") from error

    def _why(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")):
            return "cannot grow: the disk is full; nothing was changed. Make room and try again"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return (
                f"has been locked by another process for more than {self._patience:g} s; end that"
                " process, or continue it if it was stopped (its state is T in ps)"
            )
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return f"is not a database of Pyrite, or is damaged ({error}); use another folder"
        if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
            return f"cannot be written ({error}); choose a folder that you can write to"
        return f"cannot be used ({error}); look at the disk that it is on"


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
