"""Files that are found by a URL: read and written like those of this machine, in any format."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import pyrite
from pyrite import DAG, Instance, InvalidDAG, JobFailed, between
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.engine.member import RunContext
from pyrite.processors.files import WriteFiles
from pyrite.processors.files.manifest import Owner
from tests.processors.files.jobs import ITEMS, copy, read_back


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
    names = [path.rsplit("/", 1)[-1].split(".")[0] for path in memory.glob("/new/out/part-*")]
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
    names = ["/out/.pyrite-files", "/out/mine.txt", "/out/part-00000.txt"]
    assert memory.ls("/out", detail=False) == names
    assert memory.cat_file("/out/part-00000.txt") == b"new\n"


def test_a_job_that_fails_leaves_nothing(pyr: Instance, memory: MemoryFileSystem) -> None:
    with pytest.raises(JobFailed):
        copy(pyr, p.read_items(["good", "two\nlines"]), p.write_files("memory://out"))
    assert memory.find("/") == []
    assert not memory.exists("/out")


def test_no_match_is_named(pyr: Instance, memory: MemoryFileSystem) -> None:
    with pytest.raises(
        JobFailed,
        match=r"no file matches 'memory://nowhere/\*.txt', which vertex 'read' reads \(the step",
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


def test_a_second_job_of_this_process_to_the_same_url_is_refused(
    pyr: Instance, memory: MemoryFileSystem
) -> None:
    def write_as_well(line: str) -> str:
        with pyrite.instance() as other:
            copy(other, p.read_items(["second"]), p.write_files("memory://out"))
        return line

    with pytest.raises(JobFailed, match=r"because light job .* is writing to it"):
        copy_through(pyr, write_as_well)
    assert not memory.exists("/out")


def test_a_commit_of_another_process_in_the_meantime_is_noticed(
    pyr: Instance, memory: MemoryFileSystem
) -> None:
    def commit(line: str) -> str:
        manifest = {"job": "job 'other'", "execution": "e", "files": {"part-00000.txt": "6"}}
        memory.pipe("/out/.pyrite-files", json.dumps(manifest).encode())
        memory.pipe("/out/part-00000.txt", b"other\n")
        return line

    with pytest.raises(JobFailed, match="because job 'other' has changed what is in it since"):
        copy_through(pyr, commit)
    assert memory.cat_file("/out/part-00000.txt") == b"other\n"


def copy_through(pyr: Instance, act: Any) -> None:
    dag = DAG()
    read, acts = dag.vertex("read", p.read_items(["first"])), dag.vertex("act", p.map(act))
    dag.edge(between(read, acts))
    dag.edge(between(acts, dag.vertex("write", p.write_files("memory://out"))))
    pyr.new_light_job(dag).execute().result(10)


def test_what_a_dead_process_of_this_machine_left_is_removed(
    pyr: Instance, memory: MemoryFileSystem
) -> None:
    with subprocess.Popen(["true"]) as dead:
        pass
    context: Any = SimpleNamespace(job_name="job 'x'", vertex_name="v")
    for name, process in (("dead", dead.pid), ("own", os.getpid()), ("alive", os.getppid())):
        owner = {**asdict(Owner.of(context)), "process": process}
        memory.pipe(f"/out/.pyrite-{name}-v/owner.json", json.dumps(owner).encode())
    copy(pyr, p.read_items(["a"]), p.write_files("memory://out"))
    names = ["/out/.pyrite-alive-v", "/out/.pyrite-files", "/out/part-00000.txt"]
    assert sorted(memory.ls("/out", detail=False)) == names
    assert read_back(pyr, "memory://out/**", "text") == ["a"]


def test_what_a_task_writes_after_its_job_was_discarded_is_removed_by_the_next_job(
    pyr: Instance, memory: MemoryFileSystem
) -> None:
    step = p.write_files("memory://out").step
    assert isinstance(step, WriteFiles)
    fields = RunContext(
        job_name="j", job_id="j", execution_id="e", member_count=1, collections=MemoryCollections()
    ).fields("write", 1)
    step.begin(MetaSupplierContext(**fields)).discard()
    writer = step.open(ProcessorContext(**fields, member_index=0, local_index=0))
    writer.write(["late"])
    writer.complete()
    assert memory.exists("/out/.pyrite-e-write")
    copy(pyr, p.read_items(["a"]), p.write_files("memory://out"))
    assert sorted(memory.ls("/out", detail=False)) == ["/out/.pyrite-files", "/out/part-00000.txt"]


def test_what_others_have_changed_since_is_seen_where_fsspec_remembers_folders(
    pyr: Instance, memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: dict[str, Any] = {}
    ls = MemoryFileSystem.ls

    def remembered(self: Any, path: str, detail: bool = True, **options: Any) -> Any:
        if path not in listed:
            listed[path] = ls(self, path, detail=True, **options)
        return listed[path] if detail else [each["name"] for each in listed[path]]

    monkeypatch.setattr(MemoryFileSystem, "ls", remembered)
    monkeypatch.setattr(MemoryFileSystem, "invalidate_cache", lambda self: listed.clear())
    memory.pipe("/in/a.txt", b"a\n")
    assert read_back(pyr, "memory://in/*", "text") == ["a"]
    memory.pipe("/in/b.txt", b"b\n")
    assert sorted(read_back(pyr, "memory://in/*", "text")) == ["a", "b"]
    copy(pyr, p.read_items(["mine"]), p.write_files("memory://out"))
    memory.pipe("/out/part-00001.txt", b"yours")
    with pytest.raises(JobFailed, match=r"part-00001.txt', which no job has written"):
        copy(pyr, p.read_items(["x"]), p.write_files("memory://out"), parallelism=2)
