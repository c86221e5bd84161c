"""Folders that jobs write to: all of a job's files or none, one job at a time, and never a user's
own file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import DAG, Instance, JobFailed, between, from_
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.processors.files import WriteFiles, attempts, committing
from pyrite.processors.files.locking import FolderIsTaken, lock_by_file
from pyrite.processors.files.storage import DEAD, LocalStorage
from tests.processors.files.jobs import contents, copy, read_back, visible


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def test_a_job_that_fails_leaves_nothing_behind_and_what_was_there_as_it_was(
    pyr: Instance, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(100_000)))
    bad = dag.vertex("bad", p.map(lambda n: 1 // (99_999 - n)))
    dag.edge(between(read, bad)).edge(between(bad, dag.vertex("write", p.write_files(out))))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(20)
    assert not out.exists()
    copy(pyr, p.read_items(["kept"]), p.write_files(out))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(20)
    assert visible(out) == ["part-00000.txt"]
    assert (out / "part-00000.txt").read_text() == "kept\n"


def test_a_job_replaces_the_files_of_the_one_before_and_no_others(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "README.txt").write_text("mine")
    copy(pyr, p.read_items(range(10)), p.write_files(tmp_path), parallelism=3)
    copy(pyr, p.read_items(range(5)), p.write_files(tmp_path), parallelism=2)
    assert visible(tmp_path) == ["README.txt", "part-00000.txt", "part-00001.txt"]
    assert sorted(read_back(pyr, tmp_path / "part-*", "text")) == list("01234")


def test_a_failed_job_leaves_the_users_own_empty_folder(pyr: Instance, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    with pytest.raises(JobFailed):
        copy(pyr, p.read_items(["a", "b\nc"]), p.write_files(out))
    assert list(out.iterdir()) == []


def test_a_job_with_another_format_replaces_the_files_of_the_one_before(
    pyr: Instance, tmp_path: Path
) -> None:
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    copy(pyr, p.read_items([{"a": 1}]), p.write_files(tmp_path, format="jsonl"))
    assert visible(tmp_path) == ["part-00000.jsonl"]


def copy_to_both(pyr: Instance, items: list[str], one: Any, two: Any) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items(items))
    dag.edge(from_(read, 0).to(dag.vertex("one", one, local_parallelism=1)))
    dag.edge(from_(read, 1).to(dag.vertex("two", two, local_parallelism=1)))
    pyr.new_light_job(dag).execute().result(10)


def test_when_one_of_two_sinks_cannot_be_committed_neither_is(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = p.write_files(tmp_path / "1"), p.write_files(tmp_path / "2")
    copy_to_both(pyr, ["old"], one, two)
    (tmp_path / "1" / "part-00007.txt").write_text("mine")
    (tmp_path / "2" / "mine.txt").write_text("mine")
    before = contents(tmp_path / "1"), contents(tmp_path / "2")

    def move(self: LocalStorage, path: str, to: str) -> None:
        if to == f"{tmp_path}/2/part-00000.txt" and "before" not in path:
            raise OSError("the disk is full")
        os.replace(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "move", move)
        with pytest.raises(JobFailed, match="the disk is full") as failed:
            copy_to_both(pyr, ["new"], one, two)
    assert failed.value.vertex == "two"
    assert (contents(tmp_path / "1"), contents(tmp_path / "2")) == before
    copy_to_both(pyr, ["new"], one, two)
    assert contents(tmp_path / "1") == {"part-00000.txt": "new\n", "part-00007.txt": "mine"}
    assert contents(tmp_path / "2") == {"part-00000.txt": "new\n", "mine.txt": "mine"}


def test_what_cannot_be_put_back_is_kept_and_put_back_by_the_next_job(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copy(pyr, p.read_items(["old"]), p.write_files(tmp_path))

    def move(self: LocalStorage, path: str, to: str) -> None:
        if to == f"{tmp_path}/part-00000.txt":
            raise OSError("the disk is gone")
        os.replace(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "move", move)
        with pytest.raises(JobFailed, match="the disk is gone"):
            copy(pyr, p.read_items(["new"]), p.write_files(tmp_path))
    (kept,) = tmp_path.glob(".pyrite-*/before/*")
    assert kept.read_text() == "old\n"
    assert f"they are in '{kept.parent}'" in caplog.text
    with pytest.raises(JobFailed, match="line break"):
        copy(pyr, p.read_items(["two\nlines"]), p.write_files(tmp_path))
    assert contents(tmp_path) == {"part-00000.txt": "old\n"}
    assert hidden(tmp_path) == [".pyrite-files"]


def test_a_user_s_own_file_is_left_alone_whatever_its_name(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "part-00000.csv").write_text("mine")
    (tmp_path / "part-00001.txt").write_text("mine as well")
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    copy(pyr, p.read_items(["b"]), p.write_files(tmp_path))
    assert contents(tmp_path) == {
        "part-00000.csv": "mine",
        "part-00000.txt": "b\n",
        "part-00001.txt": "mine as well",
    }


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_a_job_that_needs_the_name_of_a_user_s_file_is_refused_before_any_work(
    pyr: Instance, tmp_path: Path, make: Any
) -> None:
    make(tmp_path / "part-00001.txt")
    worked: list[int] = []
    with pytest.raises(
        JobFailed, match=r"part-00001.txt', which no job has written, or which"
    ) as no:
        copy(pyr, p.read_items(map(worked.append, [1])), p.write_files(tmp_path), parallelism=2)
    assert no.value.vertex == "write"
    assert not worked
    assert os.listdir(tmp_path) == ["part-00001.txt"]


def test_a_file_that_a_user_adds_during_the_job_is_not_replaced(
    pyr: Instance, tmp_path: Path
) -> None:
    copy(pyr, p.read_items(["old"]), p.write_files(tmp_path / "out"))

    def add(line: str) -> str:
        (tmp_path / "out" / "part-00001.txt").write_text("mine")
        return line

    dag = DAG()
    read, adds = dag.vertex("read", p.read_items(["new"])), dag.vertex("add", p.map(add))
    write = dag.vertex("write", p.write_files(tmp_path / "out"), local_parallelism=2)
    dag.edge(between(read, adds)).edge(between(adds, write))
    with pytest.raises(JobFailed, match="which no job has written"):
        pyr.new_light_job(dag).execute().result(10)
    assert contents(tmp_path / "out") == {"part-00000.txt": "old\n", "part-00001.txt": "mine"}


def test_hidden_files_are_not_read(pyr: Instance, tmp_path: Path) -> None:
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    assert hidden(tmp_path) == [".pyrite-files"]
    assert read_back(pyr, tmp_path / "*", "text") == ["a"]


def test_a_failed_job_removes_the_folders_that_it_made_and_no_others(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(JobFailed):
        copy(pyr, p.read_items(["a\nb"]), p.write_files(tmp_path / "mine" / "new" / "out"))
    assert os.listdir(tmp_path) == ["mine"]
    assert os.listdir(tmp_path / "mine") == []


class Held:
    """A job that writes to a folder until it is let go."""

    def __init__(self, pyr: Instance, folder: Path) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

        def wait(line: str) -> str:
            self.begun.set()
            assert self.go_on.wait(10)
            return line

        dag = DAG()
        read, waits = dag.vertex("read", p.read_items(["held"])), dag.vertex("wait", p.map(wait))
        dag.edge(between(read, waits))
        dag.edge(between(waits, dag.vertex("write", p.write_files(folder))))
        self.job = pyr.new_light_job(dag)
        self.execution = self.job.execute()
        assert self.begun.wait(10)


def test_a_second_job_to_the_same_folder_is_refused_with_the_name_of_the_first(
    tmp_path: Path,
) -> None:
    with pyrite.instance() as one, pyrite.instance() as two:
        held = Held(one, tmp_path / "out")
        message = f"because {held.job.name} .*process {os.getpid()} on .* is writing to it; wait"
        with pytest.raises(JobFailed, match=message) as refused:
            copy(two, p.read_items(["second"]), p.write_files(tmp_path / "out"))
        assert refused.value.vertex == "write"
        held.go_on.set()
        held.execution.result(10)
        assert contents(tmp_path / "out") == {"part-00000.txt": "held\n"}
        copy(two, p.read_items(["second"]), p.write_files(tmp_path / "out"))
        assert contents(tmp_path / "out") == {"part-00000.txt": "second\n"}


def test_of_jobs_at_the_same_time_each_is_whole_or_refused(tmp_path: Path) -> None:
    def run(number: int) -> None:
        with pyrite.instance() as pyr:
            for turn in range(8):
                lines = [f"{number} {turn}"] * 3
                try:
                    copy(pyr, p.read_items(lines), p.write_files(tmp_path / "out"), parallelism=3)
                    done.append(f"{number} {turn}")
                except JobFailed as error:
                    refused.append(str(error))

    done: list[str] = []
    refused: list[str] = []
    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("is writing to it" in message for message in refused)
    files = contents(tmp_path / "out")
    assert len(files) == 3
    assert len(set(files.values())) == 1  # of one job
    assert files["part-00000.txt"].strip() in done
    assert hidden(tmp_path / "out") == [".pyrite-files"]


HELD_IN_ANOTHER_PROCESS = """
import os, sys, pyrite
from pyrite import DAG, between, processors as p
folder, how = sys.argv[1:]

def hold(line):
    print("begun", flush=True)
    sys.stdin.readline()
    return line

if how == "commit":
    from pyrite.processors.files.storage import DEAD, LocalStorage
    def move(self, path, to):
        os.replace(path, to)
        if to.endswith("/part-00001.txt") and "before" not in to:
            hold(to)
    LocalStorage.move = move

dag = DAG()
read = dag.vertex("read", p.read_items(["1", "2", "3"]))
held = dag.vertex("hold", p.map(hold if how == "write" else str))
dag.edge(between(read, held))
dag.edge(between(held, dag.vertex("write", p.write_files(folder), local_parallelism=3)))
with pyrite.instance() as pyr:
    pyr.new_light_job(dag).execute().result(30)
"""


@pytest.mark.parametrize("how", ["write", "commit"])
def test_a_job_of_a_process_that_was_killed_blocks_nobody_and_leaves_nothing(
    pyr: Instance, tmp_path: Path, how: str
) -> None:
    out = tmp_path / "out"
    copy(pyr, p.read_items(["old"]), p.write_files(out), parallelism=2)
    before = contents(out)
    command = [sys.executable, "-c", HELD_IN_ANOTHER_PROCESS, str(out), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"begun\n"
        with pytest.raises(JobFailed, match=f"process {other.pid} on .* is writing to it"):
            copy(pyr, p.read_items(["new"]), p.write_files(out))
        other.send_signal(signal.SIGKILL)
        other.wait(10)
    with pytest.raises(JobFailed, match="line break"):  # cleans up, and changes nothing itself
        copy(pyr, p.read_items(["two\nlines"]), p.write_files(out))
    assert contents(out) == before
    assert hidden(out) == [".pyrite-files"]
    copy(pyr, p.read_items(["new"]), p.write_files(out))
    assert contents(out) == {"part-00000.txt": "new\n"}


def test_what_a_job_of_another_machine_left_is_not_touched(pyr: Instance, tmp_path: Path) -> None:
    left = tmp_path / ".pyrite-abc-write"
    left.mkdir()
    owner = {"job": "job 'x'", "vertex": "write", "process": 1, "host": "elsewhere", "boot": "b"}
    (left / "owner.json").write_text(json.dumps(owner))
    (left / "part-00000-7.txt").write_text("x")
    (tmp_path / ".pyrite-unknown").mkdir()
    (tmp_path / ".pyrite-unknown" / "file").touch()
    (tmp_path / ".pyrite-empty").mkdir()
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    assert hidden(tmp_path) == [".pyrite-abc-write", ".pyrite-files", ".pyrite-unknown"]
    assert sorted(os.listdir(left)) == ["owner.json", "part-00000-7.txt"]


def test_what_a_process_left_before_it_said_whose_it_is_is_removed(
    pyr: Instance, tmp_path: Path
) -> None:
    for content in ("", '{"job": "jo'):
        (tmp_path / ".pyrite-abc-write").mkdir()
        (tmp_path / ".pyrite-abc-write" / "owner.json").write_text(content)
        copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
        assert hidden(tmp_path) == [".pyrite-files"]


def test_a_folder_that_cannot_be_removed_is_renamed_once(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rmtree(path: str) -> None:
        raise OSError("a file in it is busy")

    (tmp_path / ".pyrite-abc-write").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", rmtree)
        for _ in range(3):
            with pytest.raises(JobFailed, match="line break"):
                copy(pyr, p.read_items(["two\nlines"]), p.write_files(tmp_path))
    assert ".pyrite-abc-write.dead" in hidden(tmp_path)
    assert not any(name.endswith(".dead.dead") for name in hidden(tmp_path))
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    assert hidden(tmp_path) == [".pyrite-files"]


def test_the_error_that_stopped_a_job_is_not_replaced_by_one_while_it_tidies_up(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(self: LocalStorage, path: str) -> None:
        raise RuntimeError("cannot be removed either")

    def no_space(storage: Any, path: str, content: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(LocalStorage, "remove_folder", remove)
    monkeypatch.setattr(committing, "write_json", no_space)
    with pytest.raises(JobFailed, match=r"vertex 'write' cannot write to folder .*no space left"):
        copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))


@pytest.mark.parametrize("letter", ["v", "ä", " "])
def test_the_name_of_a_vertex_may_be_long(pyr: Instance, tmp_path: Path, letter: str) -> None:
    dag = DAG()
    write = dag.vertex("w" + letter * 300 + "w", p.write_files(tmp_path))
    dag.edge(between(dag.vertex("read", p.read_items(["a"])), write))
    pyr.new_light_job(dag).execute().result(10)
    assert "a\n" in contents(tmp_path).values()


def test_a_lock_ends_with_its_process_even_if_that_had_forked(tmp_path: Path) -> None:
    lock: Any = lock_by_file(str(tmp_path), "job 'a'")
    with pytest.raises(FolderIsTaken, match="job 'a'"):
        lock_by_file(str(tmp_path), "job 'b'")
    hold, let_go = os.pipe()
    is_up, says_up = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads do not matter here
        child = os.fork()
    if child == 0:
        os.close(let_go)
        os.write(says_up, b"x")
        os.read(hold, 1)
        os._exit(0)
    os.read(is_up, 1)
    os.close(lock._file)  # as when the process ends: without any farewell
    try:
        lock_by_file(str(tmp_path), "job 'b'").release()
    finally:
        for end in (let_go, hold, is_up, says_up):
            os.close(end)
        os.waitpid(child, 0)
    assert os.listdir(tmp_path) == []


def test_a_task_that_outlives_its_job_cannot_bring_the_folder_back(tmp_path: Path) -> None:
    step = p.write_files(tmp_path / "out").step
    assert isinstance(step, WriteFiles)
    fields: dict[str, Any] = {
        "vertex_name": "write",
        "local_parallelism": 1,
        "member_count": 1,
        "job_id": "j",
        "execution_id": "e",
        "collections": None,
    }
    commit = step.begin(MetaSupplierContext(**fields))
    task = ProcessorContext(**fields, member_index=0, local_index=0)
    writer = step.open(task)
    commit.discard()
    writer.write(["late"])
    writer.complete()
    with pytest.raises(Exception, match="either the job has ended, or the folder is not shared"):
        step.open(task)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_removed_during_the_job_is_named(pyr: Instance, tmp_path: Path) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([tmp_path / "out"]))
    remove = dag.vertex("remove", p.map(lambda folder: shutil.rmtree(folder) or "gone"))
    dag.edge(between(read, remove))
    dag.edge(between(remove, dag.vertex("write", p.write_files(tmp_path / "out"))))
    with pytest.raises(JobFailed, match=r"vertex 'write' cannot commit to folder '.*/out'"):
        pyr.new_light_job(dag).execute().result(10)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["", "[]", '{"job": 1}', '{"files": ["../../x"]}'])
def test_a_list_of_files_that_cannot_be_read_is_named(
    pyr: Instance, tmp_path: Path, content: str
) -> None:
    (tmp_path / ".pyrite-files").write_text(content)
    with pytest.raises(JobFailed, match=r"'.*/.pyrite-files' should list the files"):
        copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    assert os.listdir(tmp_path) == [".pyrite-files"]


DIES_AFTER_THE_COMMIT = """
import os, sys, pyrite
from pyrite import DAG, between, processors as p
from pyrite.processors.files.committing import FolderCommit
FolderCommit.finish = lambda self: os._exit(0)
dag = DAG()
read = dag.vertex("read", p.read_items(["dead"]))
dag.edge(between(read, dag.vertex("write", p.write_files(sys.argv[1]), local_parallelism=1)))
with pyrite.instance() as pyr:
    pyr.new_light_job(dag).execute().result(30)
"""


def test_a_dead_job_is_not_undone_once_another_job_has_committed(
    pyr: Instance, tmp_path: Path
) -> None:
    copy(pyr, p.read_items(["old"]), p.write_files(tmp_path))
    subprocess.run(
        [sys.executable, "-c", DIES_AFTER_THE_COMMIT, str(tmp_path)], check=True, timeout=30
    )
    (left,) = tmp_path.glob(".pyrite-*/owner.json")
    owner = left.read_text()
    left.write_text(json.dumps({**json.loads(owner), "host": "elsewhere", "boot": "b"}))
    copy(pyr, p.read_items(["new"]), p.write_files(tmp_path))  # leaves it: another machine's
    left.write_text(owner)
    with pytest.raises(JobFailed, match="line break"):
        copy(pyr, p.read_items(["two\nlines"]), p.write_files(tmp_path))
    assert contents(tmp_path) == {"part-00000.txt": "new\n"}
    assert hidden(tmp_path) == [".pyrite-files"]


def test_a_file_that_a_user_puts_in_the_place_of_a_job_s_is_the_user_s(
    pyr: Instance, tmp_path: Path
) -> None:
    copy(pyr, p.read_items(["a", "b"]), p.write_files(tmp_path), parallelism=2)
    for name in visible(tmp_path):
        (tmp_path / name).unlink()
    (tmp_path / "part-00001.txt").write_text("m\n")
    copy(pyr, p.read_items(["c"]), p.write_files(tmp_path))
    assert contents(tmp_path) == {"part-00000.txt": "c\n", "part-00001.txt": "m\n"}
    with pytest.raises(JobFailed, match=r"part-00001.txt', which no job has written, or which was"):
        copy(pyr, p.read_items(["d"]), p.write_files(tmp_path), parallelism=2)
    assert contents(tmp_path) == {"part-00000.txt": "c\n", "part-00001.txt": "m\n"}


def test_no_name_of_a_vertex_makes_an_attempt_look_dead() -> None:
    context = MetaSupplierContext(
        vertex_name="sink.dead",
        local_parallelism=1,
        member_count=1,
        job_id="1",
        execution_id="2",
        collections=MemoryCollections(),
    )
    assert not attempts.attempt_folder("out", context).endswith(DEAD)


def test_a_failed_job_removes_folders_that_two_of_its_sinks_made_inside_each_other(
    pyr: Instance, tmp_path: Path
) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(10)))
    bad = dag.vertex("bad", p.map(lambda n: 1 // (9 - n)))
    dag.edge(between(read, bad))
    for ordinal, folder in enumerate(["n/a", "n/a/b/c"]):
        sink = dag.vertex(f"sink {ordinal}", p.write_files(tmp_path / folder))
        dag.edge(from_(bad, ordinal).to(sink))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(20)
    assert os.listdir(tmp_path) == []
