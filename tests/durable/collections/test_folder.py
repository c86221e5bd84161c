"""Named maps and lists in a folder: shared by processes, changed once by each job, and clear about
what is wrong. What holds for all kinds of collections is in tests/collections/test_contract.py."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import processors as p
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.collections.stored.values import CannotStore
from pyrite.durable.collections import FolderCollections, behind
from pyrite.durable.collections.applying import PIECE
from pyrite.durable.folder.layout import collections_file
from pyrite.exchange.collected import AddOnlyCollections, Collected
from tests.processors.files.jobs import copy

ADDED = [
    Collected("map", "m", {"a": 1, "b": 2}),
    Collected("list", "l", [1, 2]),
    Collected("list", "l", [3]),
]


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[FolderCollections]:
    with closing(FolderCollections(tmp_path)) as collections:
        yield collections


def in_processes(count: int, program: str, folder: Path) -> list[int]:
    """The exit codes of processes that run a program, in which `c` are the collections."""
    start = (
        "import sys; from pathlib import Path\n"
        "from pyrite.durable.collections import FolderCollections\n"
        "from pyrite.exchange.collected import Collected\n"
        "c = FolderCollections(Path(sys.argv[1])); me = int(sys.argv[2])\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", start + program, folder, str(number)])
        for number in range(count)
    ]
    return [process.wait(60) for process in running]


def test_processes_share_them_and_each_call_is_one_step(
    tmp_path: Path, stored: FolderCollections
) -> None:
    program = (
        "for n in range(50):\n"
        "    c.list('l').extend([me, me]); c.map('m')[me, n] = n; c.list('l').pop(0)\n"
    )
    assert in_processes(3, program, tmp_path) == [0, 0, 0]
    assert len(stored.list("l")) == 150
    assert stored.map("m") == {(me, n): n for me in range(3) for n in range(50)}


def test_they_are_there_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    for number in range(3):
        with closing(FolderCollections(tmp_path)) as collections:
            collections.list("l").append(number)
    with closing(FolderCollections(tmp_path)) as collections:
        assert collections.contents() == [("list", "l", [0, 1, 2])]


def test_entries_keep_their_order_as_in_a_dict(stored: FolderCollections) -> None:
    entries = stored.map("m")
    entries.update({"z": 1, "a": 2, "k": 3})
    entries["z"] = 4
    del entries["a"]
    entries["a"] = 5
    assert list(entries.items()) == [("z", 4), ("k", 3), ("a", 5)]


def test_a_name_may_be_any_string(stored: FolderCollections) -> None:
    for name in ("", "größe", "half \ud800", "a'b"):
        stored.list(name).append(name)
    assert stored.contents() == [
        ("list", name, [name]) for name in ("", "größe", "half \ud800", "a'b")
    ]


def test_what_a_job_collected_is_applied_once(stored: FolderCollections) -> None:
    stored.map("m").update({"a": 0, "c": 0})
    assert stored.apply("j", ADDED)
    assert not stored.apply("j", ADDED)
    assert stored.map("m") == {"a": 1, "b": 2, "c": 0}
    assert stored.list("l") == [1, 2, 3]


def test_two_processes_that_apply_a_job_at_once_apply_it_once(
    tmp_path: Path, stored: FolderCollections
) -> None:
    program = "c.apply('j', [Collected('list', 'l', [me]) for _ in range(100)])"
    assert in_processes(3, program, tmp_path) == [0, 0, 0]
    assert len(stored.list("l")) == 100
    assert len(set(stored.list("l"))) == 1


def test_what_was_told_by_a_task_is_applied(stored: FolderCollections) -> None:
    told: list[Collected] = []
    task = AddOnlyCollections(told.append, "a task")
    task.map("m").update({1: "a"})
    task.list("l").extend("xy")
    stored.apply("j", told)
    assert stored.contents() == [("map", "m", [(1, "a")]), ("list", "l", ["x", "y"])]


def test_a_job_that_was_forgotten_can_be_applied_again(stored: FolderCollections) -> None:
    stored.apply("j", ADDED)
    stored.forget("j")
    stored.forget("never applied")
    assert stored.apply("j", [Collected("list", "l", [4])])
    assert stored.list("l") == [1, 2, 3, 4]


def broken(added: list[Collected], error: type[Exception]) -> Iterator[Collected]:
    yield from added
    raise error("broken")


@pytest.mark.parametrize(
    ("collected", "error"),
    [
        (lambda: broken(ADDED, RuntimeError), RuntimeError),
        (lambda: broken(ADDED, BrokenPipeError), BrokenPipeError),
        (lambda: [*ADDED, Collected("list", "l", [threading.Lock()])], CannotStore),
        (lambda: [*ADDED, Collected("map", "m", {object(): 1})], CannotStore),
    ],
)
def test_a_job_is_applied_as_a_whole_or_not_at_all(
    stored: FolderCollections, collected: Callable[[], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        stored.apply("j", collected())
    assert stored.contents() == []
    assert stored.apply("j", ADDED)


def many(*, meanwhile: Callable[[], None] = lambda: None) -> Iterator[Collected]:
    """More than fits into one transaction."""
    for number in range(4):
        yield Collected("list", "l", [number, bytes(PIECE)])
        yield Collected("map", "m", {"last": number, number: None})
        meanwhile()


def rows_left(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "collections.sqlite")) as file:
        found = file.execute(
            "SELECT (SELECT count(*) FROM staged), (SELECT count(*) FROM attempts)"
        )
        return sum(found.fetchone())


def test_others_can_write_while_much_is_applied(tmp_path: Path, stored: FolderCollections) -> None:
    other = FolderCollections(tmp_path, patience=0.1)
    assert stored.apply("j", many(meanwhile=lambda: other.list("l").append("other")))
    values = [value for value in stored.list("l") if not isinstance(value, bytes)]
    assert values == ["other"] * 4 + [0, 1, 2, 3]
    assert list(stored.map("m").items())[:2] == [("last", 3), (0, None)]
    assert not stored.apply("j", many())
    assert rows_left(tmp_path) == 0
    other.close()


def test_who_applies_a_large_job_second_changes_nothing(
    tmp_path: Path, stored: FolderCollections
) -> None:
    other = FolderCollections(tmp_path)
    answers: list[bool] = []

    def first() -> None:
        if not answers:
            answers.append(other.apply("j", many()))

    answers.append(stored.apply("j", many(meanwhile=first)))
    assert answers == [True, False]
    assert len(stored.list("l")) == 8
    assert rows_left(tmp_path) == 0
    other.close()


def test_what_a_killed_process_has_staged_goes_with_the_mark(
    tmp_path: Path, stored: FolderCollections
) -> None:
    program = (
        "import os, signal\n"
        "def added():\n"
        "    yield Collected('list', 'l', [bytes(5_000_000)])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "c.apply('j', added())\n"
    )
    assert in_processes(1, program, tmp_path) == [-signal.SIGKILL]
    assert rows_left(tmp_path) == 2
    assert stored.contents() == []
    stored.forget("j")
    assert rows_left(tmp_path) == 0


def test_a_process_that_is_killed_while_it_applies_changes_nothing(
    tmp_path: Path, stored: FolderCollections
) -> None:
    program = (
        "import os, signal\n"
        "def added():\n"
        "    yield Collected('list', 'l', list(range(10_000)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "c.apply('j', added())\n"
    )
    assert in_processes(1, program, tmp_path) == [-signal.SIGKILL]
    assert stored.contents() == []
    assert stored.apply("j", ADDED)


def test_a_value_that_cannot_be_stored_changes_nothing(stored: FolderCollections) -> None:
    with pytest.raises(CannotStore, match=r"lock.* cannot be pickled"):
        stored.list("l").extend([1, threading.Lock()])
    with pytest.raises(CannotStore, match="cannot be a key of a stored map"):
        stored.map("m").update({1: 1, object(): 2})
    assert stored.contents() == []


def test_an_execution_reads_what_it_added_and_others_see_it_after_a_flush(
    stored: FolderCollections,
) -> None:
    own = stored.for_execution()
    for n in range(100):
        own.map("m").update({n: n})
        own.list("l").extend([n, n])
    assert own.list("l")[-1] == 99
    own.map("m")[0] = "changed"
    own.flush()
    assert stored.map("m") == {**{n: n for n in range(100)}, 0: "changed"}
    assert len(stored.list("l")) == 200


def test_more_than_the_line_holds_is_written_in_order(
    stored: FolderCollections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(behind, "MOST_HELD", 5000)
    monkeypatch.setattr(behind, "MOST_IN_A_STEP", 1000)
    executions = [stored.for_execution() for _ in range(2)]
    for n in range(200):
        for own in executions:
            own.list("l").append(n)
    for own in executions:
        own.flush()
    assert stored.list("l") == [n for n in range(200) for _ in range(2)]


def test_an_execution_learns_of_a_full_disk_at_its_flush_and_can_go_on(
    stored: FolderCollections,
) -> None:
    own = stored.for_execution()
    with stored._file.reading("the limit") as rows:
        rows.execute("PRAGMA max_page_count = 30")
    own.list("l").append(b"x" * 1_000_000)
    with pytest.raises(CollectionsUnavailable, match=r"the list 'l' .* the disk is full"):
        own.flush()
    own.list("l").append("small")
    own.flush()
    assert stored.list("l") == ["small"]


def test_closing_waits_for_what_an_execution_added(tmp_path: Path) -> None:
    collections = FolderCollections(tmp_path)
    collections.for_execution().list("l").extend(range(10_000))
    collections.close()
    assert not [t for t in threading.enumerate() if t.name == "pyrite-collections"]
    with closing(FolderCollections(tmp_path)) as again:
        assert len(again.list("l")) == 10_000


def test_light_jobs_of_an_embedded_instance_use_them(tmp_path: Path) -> None:
    with pyrite.instance(durable=tmp_path) as pyr:
        copy(pyr, p.read_items(range(3000)), p.write_list("l"))
        copy(pyr, p.read_list("l"), p.write_list("again"))
        assert pyr.list("again") == list(range(3000))
    with closing(FolderCollections(tmp_path)) as collections:
        assert collections.list("l") == list(range(3000))


def test_a_full_disk_is_named_and_changes_nothing(
    tmp_path: Path, stored: FolderCollections
) -> None:
    stored.list("l").append("small")
    with stored._file.reading("the limit") as rows:
        rows.execute("PRAGMA max_page_count = 30")
    with pytest.raises(CollectionsUnavailable) as full:
        stored.list("l").append(b"x" * 1_000_000)
    assert str(full.value) == (
        f"the list 'l' is not available: {collections_file(tmp_path)} cannot grow: the disk is "
        "full; nothing was changed. Make room and try again"
    )
    assert stored.list("l") == ["small"]


def test_a_file_that_is_no_database_is_named(tmp_path: Path, stored: FolderCollections) -> None:
    collections_file(tmp_path).write_bytes(b"something else" * 100)
    with pytest.raises(
        CollectionsUnavailable,
        match=r"the map 'm' is not available: .*collections.sqlite is not a database of Pyrite",
    ):
        stored.map("m").copy()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        CollectionsUnavailable,
        match=r"the map 'm' is not available: the folder .*file/new cannot be made",
    ):
        FolderCollections(tmp_path / "file" / "new").map("m")["a"] = 1


def test_a_file_that_another_holds_is_named_and_works_again(tmp_path: Path) -> None:
    stored = FolderCollections(tmp_path, patience=0.05)
    stored.list("l").append(1)
    with closing(sqlite3.connect(collections_file(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CollectionsUnavailable, match=r"the list 'l' .* locked by another"):
            stored.list("l").append(2)
    stored.list("l").append(3)
    assert stored.list("l") == [1, 3]
    stored.close()


def outcome_in_child(use: Callable[[], Any]) -> str:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = repr(use())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_is_told_not_to_use_the_file_that_its_parent_has_open(
    stored: FolderCollections,
) -> None:
    stored.list("l").append(1)
    said = outcome_in_child(lambda: stored.list("l").copy())
    assert said.startswith("CollectionsUnavailable: the list 'l' is not available: process ")
    assert "forked" in said
    stored.list("l").append(2)
    stored.close()
    assert outcome_in_child(lambda: stored.list("l").copy()) == "[1, 2]"
