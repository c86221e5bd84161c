from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from pyrite.workload.storage.queues import CrashStrategy, SqliteQueue
from tests.workload.queue_contract import QueueContract


def make_sqlite_queue(folder: Path, name: str, crash: CrashStrategy = "requeue") -> SqliteQueue:
    return SqliteQueue(folder / "queues.sqlite", name, crash=crash)


class TestSqliteQueue(QueueContract):
    make = make_sqlite_queue


def test_a_message_cannot_be_working_without_an_owner(tmp_path: Path) -> None:
    with make_sqlite_queue(tmp_path, "q") as queue:
        queue.put(b"x")
        with pytest.raises(sqlite3.IntegrityError):
            queue._database.execute("update messages set state = 'working'")


def test_a_bad_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="crash must be"):
        make_sqlite_queue(tmp_path, "q", crash="ignore")  # type: ignore[arg-type]


def test_a_file_that_is_not_a_database_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / "queues.sqlite").write_bytes(b"not a database" * 100)
    # The traceback in `caught` keeps the frames alive, and with them any connection left open.
    with pytest.raises(sqlite3.DatabaseError, match="not a database") as caught:
        make_sqlite_queue(tmp_path, "q")
    assert str(tmp_path / "queues.sqlite") not in open_files()
    assert caught.tb is not None


def open_files() -> set[str]:
    return {os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}
