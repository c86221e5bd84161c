"""Files at a URL are read and written like local files, in any format."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pyrite import Instance, InvalidDAG, JobFailed
from pyrite import processors as p
from tests.processors.test_files import ITEMS, copy, read_back


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    files = MemoryFileSystem()
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.mark.parametrize("format", list(ITEMS))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_what_is_written_is_read_back(
    pyr: Instance, memory: MemoryFileSystem, format: str, parallelism: int
) -> None:
    copy(
        pyr,
        p.read_items(ITEMS[format]),
        p.write_files("memory://new/out", format=format),
        parallelism=parallelism,
    )
    names = [path.rsplit("/", 1)[-1].split(".")[0] for path in memory.ls("/new/out", detail=False)]
    assert sorted(names) == [f"part-{n:05d}" for n in range(parallelism)]
    back = read_back(pyr, "memory://new/out/*", format)
    assert sorted(map(repr, back)) == sorted(map(repr, ITEMS[format]))


def test_one_file_can_be_read_by_many_at_once(pyr: Instance, memory: MemoryFileSystem) -> None:
    lines = [f"line {n}" for n in range(100_000)]
    memory.pipe("/in/a.txt", "\n".join(lines).encode())
    memory.pipe("/in/b.txt.gz", gzip.compress(b"packed\n"))
    copy(pyr, p.read_files("memory://in/*"), p.write_list("out"), parallelism=3)
    assert sorted(pyr.list("out")) == sorted([*lines, "packed"])


def test_files_of_an_earlier_job_are_replaced_and_others_left_alone(
    pyr: Instance, memory: MemoryFileSystem
) -> None:
    memory.pipe("/out/mine.txt", b"mine\n")
    copy(pyr, p.read_items(range(9)), p.write_files("memory://out"), parallelism=3)
    copy(pyr, p.read_items(["new"]), p.write_files("memory://out/"))
    assert memory.ls("/out", detail=False) == ["/out/mine.txt", "/out/part-00000.txt"]
    assert memory.cat_file("/out/part-00000.txt") == b"new\n"


def test_a_job_that_fails_leaves_nothing(pyr: Instance, memory: MemoryFileSystem) -> None:
    with pytest.raises(JobFailed):
        copy(pyr, p.read_items(["good", "two\nlines"]), p.write_files("memory://out"))
    assert memory.find("/") == []
    assert not memory.exists("/out")


def test_no_match_is_named(pyr: Instance, memory: MemoryFileSystem) -> None:
    with pytest.raises(
        JobFailed, match=r"no file matches 'memory://nowhere/\*.txt', which vertex 'read' reads$"
    ):
        copy(pyr, p.read_files("memory://nowhere/*.txt"), p.write_list("out"))


def test_a_url_without_fsspec_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(
        InvalidDAG, match=r"'s3://bucket/\*' is a URL.*pip install 'pyrite\[remote\]'"
    ):
        p.read_files("s3://bucket/*")
    p.read_files("books/*.txt")


@pytest.mark.parametrize("make", [p.read_files, p.write_files])
def test_a_url_of_no_known_kind_is_refused(make: Any) -> None:
    with pytest.raises(InvalidDAG, match=r"'nosuch://x' cannot be read or written: .*nosuch"):
        make("nosuch://x")


def test_a_url_of_this_machine(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n")
    copy(
        pyr,
        p.read_files(f"{tmp_path.as_uri()}/*.txt"),
        p.write_files(f"{tmp_path.as_uri()}/out/put"),
    )
    assert (tmp_path / "out" / "put" / "part-00000.txt").read_text() == "a\nb\n"
