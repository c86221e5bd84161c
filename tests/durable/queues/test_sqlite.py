"""What only the queues in a SQLite file do: locks of owners, full disks, damaged files, many
processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pyrite.durable.folder import layout
from pyrite.durable.folder.database import Database
from pyrite.durable.queues.queues import Message, Outgoing, QueuesError
from pyrite.durable.queues.sqlite import SqliteQueues
from tests.durable.queues.places import Job, bodies, following, take


def test_the_messages_of_a_process_that_was_killed_come_to_another(tmp_path: Path) -> None:
    queues = SqliteQueues(tmp_path)
    job = Job(queues).begin("a", "b", "c")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.durable.queues.owning", tmp_path, job.name, "doomed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"2\n"
        assert bodies(take(job, "me", 1)) == ["c"]
        assert job.held() == (0, 3)
        process.kill()
    found = take(job, "me", 2)
    assert [(one.message.body, one.tries) for one in found] == [(b"a", 1), (b"b", 1)]
    queues.close()


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(small_disk: Path) -> None:
    queues = SqliteQueues(small_disk)
    job = Job(queues).begin("a")
    last, stored = queues.record(job.out), 0
    large = Outgoing(job.count, Message("words", os.urandom(100_000)))

    def fill() -> None:
        nonlocal last, stored
        while stored < 100:
            last = queues.commit(job.out, following(last, f"{stored}"), [large], state=None)
            stored += 1

    with pytest.raises(QueuesError, match=r"disk is full.*Make room"):
        fill()
    assert queues.record(job.out) == last
    assert len(list(job.read())) == stored
    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
    queues.commit(job.out, following(last, "more"), [large], state=None)
    assert len(list(job.read())) == stored + 1
    queues.close()


def test_a_lock_that_is_held_too_long_is_a_clear_error(tmp_path: Path) -> None:
    queues = SqliteQueues(tmp_path, patience=0.05)
    job = Job(queues).begin("a")
    other = sqlite3.connect(layout.queues_file(tmp_path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(QueuesError, match=r"locked by another process .*was stopped"):
        queues.take(job.map, owner="me", limit=1)
    assert job.held() == (1, 0)
    other.execute("ROLLBACK")
    assert len(queues.take(job.map, owner="me", limit=1)) == 1
    other.close()
    queues.close()


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    layout.queues_file(tmp_path).write_bytes(b"something else" * 1000)
    with pytest.raises(QueuesError, match="is not a database of Pyrite"):
        SqliteQueues(tmp_path)


def test_a_database_of_another_program_is_a_clear_error_and_is_not_changed(tmp_path: Path) -> None:
    with sqlite3.connect(layout.queues_file(tmp_path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(QueuesError, match="another program; use another folder"):
        SqliteQueues(tmp_path)
    with sqlite3.connect(layout.queues_file(tmp_path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    other.close()


def test_nothing_is_left_in_the_file_when_a_job_is_closed(tmp_path: Path) -> None:
    queues = SqliteQueues(tmp_path)
    job = Job(queues).begin(*(str(n) for n in range(600)))
    (taken, *_) = take(job, "me", 2)
    queues.commit_taken([taken], "1", [job.word("x")])
    queues.stage(job.count, "lost", [job.word("x")])
    queues.stage(job.count, "1", [job.word("x")])
    queues.commit(job.count, following(queues.record(job.count), "1"), [], state=b"state")
    queues.stage(job.count, "2", [job.word("x")])
    queues.close_job(job.name)
    queues.close()
    with sqlite3.connect(layout.queues_file(tmp_path)) as file:
        for table in "jobs", "entries", "bodies", "records", "staged", "done":
            assert file.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    file.close()


def test_the_write_ahead_log_does_not_grow_without_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrite.durable.folder.database.LONGEST_WAL", 1_000_000)
    file = tmp_path / "test.sqlite"
    database = Database(file, "CREATE TABLE t (x)", application=1, error=QueuesError)
    database.connection.execute("PRAGMA wal_autocheckpoint = 0")
    for _ in range(640):
        with database.writing() as db:
            db.execute("INSERT INTO t VALUES (?)", (b"x" * 20_000,))
    assert (tmp_path / "test.sqlite-wal").stat().st_size < 6_000_000
    database.close()


def test_many_processes_open_a_new_folder_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pyrite.durable.queues.sqlite import *;"
        " print(SqliteQueues(Path(sys.argv[1])).jobs())"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in processes] == [b"[]\n"] * 4
