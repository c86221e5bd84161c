"""What only a store in a folder does."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.folder import layout
from pyrite.durable.folder.database import Database
from pyrite.durable.protocol.tree.writes import Put
from pyrite.durable.store import rows
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import SessionLost, Store, StoreError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    store = SqliteStore(folder)
    yield store
    store.close()


def test_a_watcher_that_fell_behind_is_told_of_everything(store: Store, folder: Path) -> None:
    other = SqliteStore(folder)
    store.watch("/a")
    store.watch_children("/none")
    epoch = other.raise_epoch()
    for _ in range(2 + rows.CHANGES_KEPT // rows.TRIM_EVERY):
        other.transact(epoch, [Put("/x", str(number)) for number in range(rows.TRIM_EVERY)])
    assert [store.changed(0), store.changed(0), store.changed(0)] == ["/a", "/none", None]
    other.close()


def test_changes_are_not_kept_for_ever(store: Store, folder: Path) -> None:
    epoch = store.raise_epoch()
    for _ in range(5 + rows.CHANGES_KEPT // rows.TRIM_EVERY):
        store.transact(epoch, [Put("/x", str(number)) for number in range(rows.TRIM_EVERY)])
    with sqlite3.connect(layout.nodes_file(folder)) as connection:
        kept = connection.execute("SELECT count(*) FROM changes").fetchone()[0]
    connection.close()
    assert rows.CHANGES_KEPT <= kept <= rows.CHANGES_KEPT + rows.TRIM_EVERY


def test_a_full_disk_is_a_clear_error_and_the_store_is_well_when_there_is_room(
    small_disk: Path,
) -> None:
    store = SqliteStore(small_disk)
    store.create("/job/j", "before")
    store.create_ephemeral("/pulse/p")
    (small_disk / "large").write_bytes(b"x" * 1_500_000)
    epoch = store.raise_epoch()
    with pytest.raises(StoreError, match=r"the disk is full; nothing was changed. Make room"):
        store.transact(epoch, [Put("/job/j", "after"), Put("/large", "x" * 900_000)])
    assert store.get("/job/j") == "before"
    (small_disk / "large").unlink()
    store.transact(epoch, [Put("/job/j", "after"), Put("/large", "x" * 100_000)])
    assert store.get("/job/j") == "after"
    store.close()


def test_a_disk_that_is_full_at_the_start_is_a_clear_error(small_disk: Path) -> None:
    try:
        with (small_disk / "large").open("wb") as large:
            large.write(b"x" * 3_000_000)
    except OSError:
        pass
    with pytest.raises(StoreError, match=r"disk is full|No space left"):
        SqliteStore(small_disk)


def test_a_file_that_is_not_a_database_is_a_clear_error(folder: Path) -> None:
    folder.mkdir(parents=True)
    layout.nodes_file(folder).write_text("not a database" * 100)
    with pytest.raises(
        StoreError, match=r"nodes.sqlite is not a database of Pyrite, or is damaged"
    ):
        SqliteStore(folder)


def test_a_file_of_another_format_is_a_clear_error(store: Store, folder: Path) -> None:
    connection = sqlite3.connect(layout.nodes_file(folder))
    connection.execute("PRAGMA application_id=7")
    connection.close()
    with pytest.raises(StoreError, match=r"was written by another version .*use another folder"):
        SqliteStore(folder)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be made or used: .*choose a folder"):
        SqliteStore(tmp_path / "file" / "folder")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    layout.nodes_file(tmp_path).mkdir()
    with pytest.raises(StoreError, match=r"cannot be written .*choose a folder"):
        SqliteStore(tmp_path)


def test_a_file_that_is_locked_for_too_long_is_a_clear_error(tmp_path: Path) -> None:
    schema = "CREATE TABLE t (x)"
    one = Database(tmp_path / "file", schema, application=1, error=StoreError)
    two = Database(tmp_path / "file", schema, application=1, error=StoreError, patience=0.05)
    late = pytest.raises(StoreError, match=r"locked .* for more than 0.05 s")
    with one.writing(), late, two.writing():
        pass
    with two.writing() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    one.close()
    two.close()


def test_who_watches_a_folder_that_was_deleted_is_told(store: Store, folder: Path) -> None:
    store.watch("/a")
    shutil.rmtree(folder)
    with pytest.raises(SessionLost, match="was deleted or replaced"):
        store.changed(10)


def test_who_has_lost_its_lock_is_told(store: Store, folder: Path) -> None:
    store.create_ephemeral("/pulse/p")
    shutil.rmtree(folder / "alive")
    with pytest.raises(SessionLost, match="the lock of this session"):
        store.changed(10)


def test_sessions_leave_no_locks(folder: Path) -> None:
    stores = [SqliteStore(folder) for _ in range(3)]
    for number, store in enumerate(stores):
        store.create_ephemeral(f"/pulse/{number}")
        store.close()
    assert list((folder / "alive").iterdir()) == []
