"""Folders that durable jobs write to: whichever process dies, and wherever, the files are then
those of the reports, and no others."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pyrite import ProcessorError
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.engine.member import RunContext
from pyrite.processors.files import committing
from pyrite.processors.files.manifest import Manifest
from pyrite.processors.files.storage import storage_of
from pyrite.processors.loops.steps import Commit, TargetIsTaken, WriteStep
from tests.processors.files.dying import Acts, Deadly, DeadlyStorage

WRITERS = 2
NEW = {"part-00000.txt": "new 0", "part-00001.txt": "new 1"}
OLD = {"part-00000.txt": "old 0", "part-00001.txt": "old 1", "part-00002.txt": "old 2"}
LIGHT = {"part-00000.txt": "light", "part-00001.txt": "right"}
"""Of the same sizes as the new ones: by URL a file is known by its size."""


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> Deadly:
    deadly = Deadly()
    monkeypatch.setattr(
        committing, "storage_of", lambda path: DeadlyStorage(storage_of(path), deadly)
    )
    return deadly


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where folders may be made: on this machine, or by URL."""
    return str(tmp_path) if request.param == "local" else "memory://place"


def fields(execution: str, writers: int = WRITERS) -> dict[str, Any]:
    run = RunContext(
        job_name=f"job '{execution}'",
        job_id=execution,
        execution_id=execution,
        member_count=writers,
        collections=MemoryCollections(),
    )
    return run.fields("write", 1)


def context(execution: str, writers: int = WRITERS) -> MetaSupplierContext:
    return MetaSupplierContext(**fields(execution, writers))


def sink_of(dir: str, **options: Any) -> WriteStep:
    step = p.write_files(dir, **options).step
    assert isinstance(step, WriteStep)
    return step


def write(sink: WriteStep, execution: str, items: Sequence[Any], attempt: str = "1-1") -> list[Any]:
    """The reports of one writer for each item."""
    reports = []
    for index, item in enumerate(items):
        where = fields(execution, len(items))
        writer = sink.open(
            ProcessorContext(**where, member_index=index, local_index=0, attempt=attempt)
        )
        writer.write([item])
        reports.append(writer.complete())
    return reports


def end(commit: Commit, reports: Sequence[Any]) -> None:
    commit.commit(reports)
    commit.finish()


def run_light(sink: WriteStep, execution: str, files: dict[str, Any]) -> None:
    commit = sink.begin(context(execution, len(files)))
    end(commit, write(sink, execution, list(files.values())))


def run_durable(sink: WriteStep, execution: str, files: dict[str, str]) -> list[Any]:
    sink.prepare(context(execution, len(files)))
    reports = write(sink, execution, list(files.values()))
    end(sink.resume(context(execution, len(files))), reports)
    return reports


def text_of(path: str) -> str:
    with storage_of(path).open(path, "rb") as file:
        return file.read().decode().strip()


def commit_only(sink: WriteStep, execution: str, reports: Sequence[Any]) -> None:
    commit = sink.resume(context(execution))
    commit.commit(reports)
    commit.let_go()


def durable_executions(dir: str) -> Sequence[str]:
    manifest = Manifest.of_folder(storage_of(dir), dir)
    return () if manifest is None else manifest.durable


def files(dir: str) -> dict[str, str]:
    names = [name for name in names_in(dir) if not name.startswith(".")]
    return {name: text_of(f"{dir}/{name}") for name in sorted(names)}


def hidden(dir: str) -> list[str]:
    return [name for name in names_in(dir) if name.startswith(".")]


def emptied(names: Iterator[str], place: str) -> Iterator[str]:
    """Removes each folder after it was looked at: the memory gets slow with many."""
    for name in names:
        yield f"{place}/{name}"
        if storage_of(place).exists(f"{place}/{name}"):
            storage_of(place).remove_folder(f"{place}/{name}")


def names_in(dir: str) -> list[str]:
    return storage_of(dir).names(dir) if storage_of(dir).exists(dir) else []


def prepared(dir: str, *, old: dict[str, str] | None = None) -> tuple[WriteStep, list[Any]]:
    """A durable job whose writers have all completed, after some that died; and their reports. An
    earlier job has written the old files."""
    sink = sink_of(dir)
    if old:
        run_light(sink, "old", old)
    sink.prepare(context("new"))
    write(sink, "new", ["abandoned"] * WRITERS, attempt="0")
    return sink, write(sink, "new", list(NEW.values()))


@pytest.mark.parametrize("old", [{}, OLD], ids=["empty", "old"])
def test_a_commit_that_is_cut_off_anywhere_is_completed_by_the_next_process(
    place: str, deadly: Deadly, old: dict[str, str]
) -> None:
    def arrange(name: str) -> Acts:
        sink, reports = prepared(f"{place}/{name}", old=old)

        def complete() -> None:
            end(sink.resume(context("new")), reports)

        return complete, complete

    for dir in emptied(deadly.cut_off(arrange), place):
        assert files(dir) == NEW, dir
        assert hidden(dir) == [".pyrite-files"], dir


@pytest.mark.parametrize("old", [{}, OLD], ids=["empty", "old"])
def test_a_job_that_is_discarded_changes_nothing_wherever_its_commit_was_cut_off(
    place: str, deadly: Deadly, old: dict[str, str]
) -> None:
    def arrange(name: str) -> Acts:
        sink, reports = prepared(f"{place}/{name}", old=old)
        return (
            lambda: commit_only(sink, "new", reports),
            lambda: sink.resume(context("new")).discard(),
        )

    for dir in emptied(deadly.cut_off(arrange), place):
        assert files(dir) == old, dir
        assert hidden(dir) == ([".pyrite-files"] if old else []), dir


LAYOUTS: list[dict[str, Any]] = [{"partition_by": "k"}, {"single_file": True}]


def parts(dir: str) -> dict[str, str]:
    """All visible files in a folder and below it."""
    found = storage_of(dir).find(f"{dir}/**/part-*")
    below = f"/{dir.rpartition('/')[2]}/"  # a URL that was found has more slashes
    return {file.path.partition(below)[2]: text_of(file.path) for file in found}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("ends", ["completed", "discarded"])
def test_a_layout_is_committed_or_discarded_wherever_its_commit_was_cut_off(
    place: str, deadly: Deadly, layout: dict[str, Any], ends: str
) -> None:
    expected: dict[str, str] = {}

    def arrange(name: str) -> Acts:
        sink = sink_of(f"{place}/{name}", format="jsonl", **layout)
        run_light(sink, "old", {"0": {"k": "a", "n": 1}, "1": {"k": "b", "n": 2}})
        expected.update(parts(f"{place}/{name}") if ends == "discarded" else {})
        sink.prepare(context("new"))
        reports = write(sink, "new", [{"k": "c", "n": 3}, {"k": "b", "n": 4}])

        def complete() -> None:
            end(sink.resume(context("new")), reports)

        if ends == "completed":
            return complete, complete
        discard = lambda: sink.resume(context("new")).discard()  # noqa: E731
        return lambda: commit_only(sink, "new", reports), discard

    for dir in emptied(deadly.cut_off(arrange), place):
        expected = expected or parts(dir)
        assert len(expected) == (1 if "single_file" in layout else 2)
        assert ('"n": 3' in "".join(expected.values())) == (ends == "completed")
        assert parts(dir) == expected, dir
        assert hidden(dir) == [".pyrite-files"], dir
        folders = {name.split("/")[0] for name in expected if "/" in name}
        assert {name for name in names_in(dir) if name.startswith("k=")} == folders, dir


def test_of_a_light_job_and_a_durable_one_whose_commit_was_cut_off_the_later_commit_stands(
    tmp_path: Path, deadly: Deadly
) -> None:
    for operation in count():
        dir = f"{tmp_path}/{operation}"
        sink, reports = prepared(dir, old=OLD)
        died = deadly.dies(operation, partial(commit_only, sink, "new", reports))
        was_committed = "new" in durable_executions(dir)
        sink.begin(context("failed")).discard()
        assert files(dir) == (NEW if was_committed else OLD)
        run_light(sink, "light", LIGHT)
        assert files(dir) == LIGHT
        end(sink.resume(context("new")), reports)
        assert files(dir) == (LIGHT if was_committed else NEW)
        assert hidden(dir) == [".pyrite-files"]
        if not died:
            break


def test_by_url_a_job_is_refused_while_a_durable_one_may_be_committing(deadly: Deadly) -> None:
    refused = 0
    for operation in count():
        dir = f"memory://place/{operation}"
        sink, reports = prepared(dir, old=OLD)
        died = deadly.dies(operation, partial(commit_only, sink, "new", reports))
        try:
            sink.begin(context("light")).discard()
        except TargetIsTaken as error:
            assert "job 'new' (vertex 'write') has begun" in str(error)  # noqa: PT017
            refused += 1
        end(sink.resume(context("new")), reports)
        assert files(dir) == NEW
        if not died:
            break
    assert 5 < refused < operation


def test_the_later_of_two_durable_jobs_stands_even_if_the_first_completes_again(place: str) -> None:
    sink = sink_of(f"{place}/out")
    sink.prepare(context("one"))
    sink.prepare(context("two"))
    one, two = write(sink, "one", ["1", "1"]), write(sink, "two", ["2", "2"])
    end(sink.resume(context("one")), one)
    end(sink.resume(context("two")), two)
    end(sink.resume(context("one")), one)
    assert set(files(f"{place}/out").values()) == {"2"}


def test_a_durable_job_that_was_replaced_before_it_was_finished_is_still_committed(
    place: str,
) -> None:
    sink, reports = prepared(f"{place}/out")
    commit_only(sink, "new", reports)
    run_light(sink, "light", LIGHT)
    end(sink.resume(context("new")), reports)
    assert files(f"{place}/out") == LIGHT
    assert hidden(f"{place}/out") == [".pyrite-files"]


def test_a_durable_job_that_was_replaced_and_is_discarded_leaves_the_later_files(
    place: str,
) -> None:
    sink, reports = prepared(f"{place}/out", old=OLD)
    commit_only(sink, "new", reports)
    run_light(sink, "light", LIGHT)
    sink.resume(context("new")).discard()
    assert files(f"{place}/out") == LIGHT
    assert hidden(f"{place}/out") == [".pyrite-files"]


def test_other_jobs_leave_the_files_of_a_durable_job_that_is_not_complete(place: str) -> None:
    sink, reports = prepared(f"{place}/out")
    run_light(sink, "light", LIGHT)
    run_durable(sink, "durable", OLD)
    end(sink.resume(context("new")), reports)
    assert files(f"{place}/out") == NEW


def test_a_durable_job_that_is_discarded_removes_the_folders_that_it_made(tmp_path: Path) -> None:
    sink, _ = prepared(f"{tmp_path}/a/b")
    for _ in range(2):
        sink.resume(context("new")).discard()
    assert os.listdir(tmp_path) == []


def test_what_was_written_and_then_removed_is_not_taken_for_committed(tmp_path: Path) -> None:
    sink, reports = prepared(str(tmp_path), old=OLD)
    (attempt,) = tmp_path.glob(".pyrite-new-*")
    shutil.rmtree(attempt)
    commit = sink.resume(context("new"))
    with pytest.raises(ProcessorError, match=r"pyrite-new-write', which had the files .* removed"):
        commit.commit(reports)
    commit.discard()
    assert files(str(tmp_path)) == OLD


def test_a_job_that_needs_the_name_of_a_user_s_file_is_refused_when_it_is_submitted(
    tmp_path: Path,
) -> None:
    (tmp_path / "part-00001.txt").write_text("mine")
    with pytest.raises(ProcessorError, match=r"part-00001.txt', which no job has written"):
        sink_of(str(tmp_path)).prepare(context("new"))
    assert os.listdir(tmp_path) == ["part-00001.txt"]


def test_a_user_s_file_that_came_later_is_not_replaced(tmp_path: Path) -> None:
    sink, reports = prepared(str(tmp_path))
    (tmp_path / "part-00001.txt").write_text("mine")
    commit = sink.resume(context("new"))
    with pytest.raises(ProcessorError, match=r"part-00001.txt', which no job has written"):
        commit.commit(reports)
    commit.discard()
    assert os.listdir(tmp_path) == ["part-00001.txt"]


def test_while_another_job_has_the_folder_a_durable_one_is_refused_and_loses_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "PATIENCE", 0.0)
    sink, reports = prepared(f"{place}/out")
    light = sink.begin(context("light"))
    for refused in (sink.prepare, sink.resume):
        with pytest.raises(TargetIsTaken, match=r"because job 'light' .* is writing to it; wait"):
            refused(context("new"))
    light.discard()
    end(sink.resume(context("new")), reports)
    assert files(f"{place}/out") == NEW


def test_a_durable_job_waits_a_little_for_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, reports = prepared(str(tmp_path))
    light = sink.begin(context("light"))
    tries = iter([lambda: None, light.discard])
    monkeypatch.setattr("time.sleep", lambda _: next(tries)())
    end(sink.resume(context("new")), reports)
    assert files(str(tmp_path)) == NEW


def test_files_with_one_schema_are_made_again_if_the_commit_is_cut_off(
    tmp_path: Path, deadly: Deadly
) -> None:
    for operation in count():
        sink = sink_of(f"{tmp_path}/{operation}", format="parquet")
        sink.prepare(context("new"))
        reports = write(sink, "new", [{"n": 1}, {"n": 2.5}])
        died = deadly.dies(operation, partial(commit_only, sink, "new", reports))
        end(sink.resume(context("new")), reports)
        read = pq.ParquetDataset(f"{tmp_path}/{operation}").read()
        assert read.to_pylist() == [{"n": 1.0}, {"n": 2.5}]
        if not died:
            break


STOPS_IN_THE_COMMIT = """
import os, pickle, sys
from pyrite.processors.files.storage import LocalStorage
from tests.processors.files.test_durable_commits import commit_only, sink_of

def move(self, path, to):
    os.replace(path, to)
    if to.endswith("out/part-00000.txt"):
        print("half-way", flush=True)
        sys.stdin.readline()

LocalStorage.move = move
commit_only(sink_of(sys.argv[1]), "new", pickle.loads(bytes.fromhex(sys.argv[2])))
"""


def test_a_process_that_is_killed_in_the_commit_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dir = f"{tmp_path}/out"
    sink, reports = prepared(dir, old=OLD)
    command = [sys.executable, "-c", STOPS_IN_THE_COMMIT, dir, pickle.dumps(reports).hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"half-way\n"
        monkeypatch.setattr(committing, "PATIENCE", 0.0)
        with pytest.raises(TargetIsTaken, match=f"process {other.pid} on .* is writing to it"):
            sink.resume(context("new"))
        other.send_signal(signal.SIGKILL)
        other.wait(10)
    assert files(dir) == {"part-00000.txt": "new 0"}
    end(sink.resume(context("new")), reports)
    assert files(dir) == NEW
    assert hidden(dir) == [".pyrite-files"]


def test_a_sink_that_cannot_be_committed_again_is_refused() -> None:
    class Other(WriteStep):
        commits = True

    with pytest.raises(ProcessorError, match="vertex 'write' cannot be in a durable job, because"):
        Other().prepare(context("new"))


def test_a_dataframe_is_refused_and_a_collection_has_nothing_to_prepare() -> None:
    frame: Any = p.write_spark(lambda df: None, "n long").step
    with pytest.raises(ProcessorError, match="vertex 'write' writes a Spark DataFrame, but a dur"):
        frame.prepare(context("new"))
    for supplier in (p.write_list("out"), p.write_map("out")):
        sink: Any = supplier.step
        sink.prepare(context("new"))
