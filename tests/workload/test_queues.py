from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pyrite.workload.queues import CrashStrategy, SqliteQueue
from tests.workload.queue_contract import QueueContract


def make_sqlite_queue(folder: Path, name: str, crash: CrashStrategy = "requeue") -> SqliteQueue:
    return SqliteQueue(folder / "queues.sqlite", name, crash=crash)


class TestSqliteQueue(QueueContract):
    make = make_sqlite_queue


def test_a_message_cannot_be_working_without_an_owner(tmp_path: Path) -> None:
    queue = make_sqlite_queue(tmp_path, "q")
    queue.put(b"x")
    with pytest.raises(sqlite3.IntegrityError):
        queue._database.execute("update messages set state = 'working'")


def test_a_bad_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="crash strategy"):
        make_sqlite_queue(tmp_path, "q", crash="ignore")  # type: ignore[arg-type]
