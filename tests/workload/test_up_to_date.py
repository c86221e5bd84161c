"""Jobs run again if what they read or wrote has changed, and are skipped if not."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import JobState, Run, Workload
from pyrite.workload.input.fingerprints.parts import Parts
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store
from pyrite.workload.yaml_file import read_yaml
from tests.workload.conftest import row_of, states

DONE, SKIPPED, FAILED = JobState.DONE, JobState.SKIPPED, JobState.FAILED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(workload: Workload) -> Run:
    run = workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(2), workers=2, store="store"
    )
    return run.wait()


def state(workload: Workload, job: str = "job") -> JobState:
    return states(ran(workload))[job]


def parts(job: str = "job") -> Parts:
    with closing(Journal(Store("store"))) as journal:
        result = journal.results.latest(job)
    assert result is not None
    return Parts.unpack(result.parts)


def one(command: Any, **options: Any) -> Workload:
    return Workload().add("job", command, **options)


def size_of(value: Any) -> int:
    return len(str(value))


@dataclass(frozen=True)
class Config:
    path: Path


RAW = Path("raw.csv")


@pytest.mark.parametrize(
    "argument", [RAW, [RAW], {"a": (RAW,)}, Config(RAW), Path("."), [Config(Path("sub"))]], ids=str
)
def test_a_path_among_the_arguments_counts_by_content(folder: Path, argument: Any) -> None:
    (folder / "sub").mkdir()
    for name in ("raw.csv", "sub/raw.csv"):
        (folder / name).write_text("1")
    assert state(one(size_of, args=[argument])) is DONE
    assert state(one(size_of, args=[argument])) is SKIPPED
    for name in ("raw.csv", "sub/raw.csv"):
        (folder / name).write_text("2")
    assert state(one(size_of, kwargs={"value": argument})) is DONE
    assert state(one(size_of, args=[argument])) is SKIPPED


def test_a_path_argument_that_an_upstream_job_writes_is_looked_at_when_the_job_is_ready() -> None:
    def flow(text: str) -> Workload:
        workload = Workload().add("write", RAW.write_text, args=[text])
        return workload.add("read", RAW.read_text, after="write")

    def with_argument(text: str) -> Workload:
        return flow(text).add("job", size_of, args=[RAW], after="write")

    assert state(with_argument("1")) is DONE
    assert state(with_argument("1")) is SKIPPED
    assert state(with_argument("2")) is DONE


class Gate:
    """Lets a test act while the job runs."""

    begun, go_on = threading.Event(), threading.Event()


def waits(path: Path) -> None:
    path.read_text()
    Gate.begun.set()
    assert Gate.go_on.wait(60)


@pytest.mark.parametrize("how", ["argument", "files_in", "program"])
def test_an_input_that_is_edited_while_the_job_runs_makes_it_run_again(how: str) -> None:
    Gate.begun.clear()
    Gate.go_on.clear()
    RAW.write_text("1")
    os.mkfifo("gate")
    workload = {
        "argument": one(waits, args=[RAW]),
        "files_in": one(lambda: waits(RAW), files_in=["raw.csv"]),
        "program": one(["sh", "-c", "[ ! -p gate ] || { echo > gate; cat gate; }", "raw.csv"]),
    }[how]
    run = workload.run(kind="transient", executor=lambda: ThreadPoolExecutor(1), store="store")
    if how == "program":
        Path("gate").read_text()
    else:
        assert Gate.begun.wait(60)
    RAW.write_text("2")
    Gate.go_on.set()
    if how == "program":
        Path("gate").write_text("go on")
    run.wait()
    Path("gate").unlink()
    assert states(run) == {"job": DONE}
    assert parts().unsure == ("the file raw.csv changed while the job ran",)
    RAW.write_text("1")  # even then: nobody knows what the job has read
    assert state(workload) is DONE
    assert state(workload) is SKIPPED


def test_a_program_that_writes_one_of_its_arguments_is_skipped_the_next_time() -> None:
    def sorting() -> Workload:
        return one(["sort", "-o", "out.txt", "in.txt"])

    Path("in.txt").write_text("2\n1\n")
    assert [state(sorting()), state(sorting())] == [DONE, SKIPPED]
    Path("in.txt").write_text("4\n3\n")
    assert [state(sorting()), state(sorting())] == [DONE, SKIPPED]
    Path("out.txt").write_text("changed")
    assert [state(sorting()), state(sorting())] == [DONE, SKIPPED]
    Path("out.txt").unlink()
    assert [state(sorting()), state(sorting())] == [DONE, SKIPPED]


def test_a_program_that_changes_its_own_input_runs_until_the_input_stays() -> None:
    Path("x").write_text("2\n1\n")
    found = [state(one(["sort", "-o", "x", "x"])) for _ in range(3)]
    assert found == [DONE, DONE, SKIPPED]


def test_a_program_whose_changed_argument_is_declared_as_output_is_skipped() -> None:
    Path("x").write_text("2\n1\n")
    found = [state(one(["sort", "-o", "x", "x"], files_out=["x"])) for _ in range(2)]
    assert found == [DONE, SKIPPED]


def fills(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    (target / source.name).write_text(source.read_text())


def test_a_folder_that_was_empty_is_an_output_of_the_job_that_fills_it() -> None:
    def filling() -> Workload:
        return one(fills, args=[RAW, Path("target")])

    RAW.write_text("1")
    Path("target").mkdir()
    assert [state(filling()), state(filling())] == [DONE, SKIPPED]
    RAW.write_text("2")
    assert [state(filling()), state(filling())] == [DONE, SKIPPED]
    Path("target", "more").write_text("")
    assert [state(filling()), state(filling())] == [DONE, SKIPPED]


def test_pipes_devices_and_files_without_an_end_are_not_read() -> None:
    os.mkfifo("pipe")
    paths = [Path("pipe"), Path("/dev/zero"), Path("/proc/kmsg"), Path("/proc/self/stat")]
    assert state(one(size_of, args=[paths])) is DONE
    assert state(one(size_of, args=[paths])) is SKIPPED


def test_a_job_that_returns_a_path_without_a_file_has_failed() -> None:
    workload = Workload().add("one", lambda: Path("missing.csv"))
    run = ran(workload.add("many", lambda: {"a": [Path("absent")]}))
    assert states(run) == {"one": FAILED, "many": FAILED}
    assert "the path 'missing.csv', but there is no such file" in str(row_of(run, "one")["error"])
    assert "the path 'absent', but there is no such file" in str(row_of(run, "many")["error"])


def writes(shape: str) -> Any:
    paths = [Path("made") / name for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return {
        "folder": paths[0].parent,
        "list": paths,
        "dict": {"all": [{"b": paths[1]}, paths[0]]},
        "dataclass": [Config(paths[1])],
    }[shape]


@pytest.mark.parametrize("shape", ["folder", "list", "dict", "dataclass"])
def test_each_file_of_a_result_is_looked_at_again(shape: str, folder: Path) -> None:
    first = ran(one(writes, args=[shape]))
    assert str(folder / "made") in repr(first.results["job"])
    assert state(one(writes, args=[shape])) is SKIPPED
    (folder / "made" / "b").write_text("another")
    assert state(one(writes, args=[shape])) is DONE
    (folder / "made" / "b").unlink()
    assert state(one(writes, args=[shape])) is DONE
    assert state(one(writes, args=[shape])) is SKIPPED


def copies(log: str = "log") -> int:
    Path("out.txt").write_text(Path("in.txt").read_text())
    return 1


def counts() -> int:
    return len(Path("out.txt").read_text())


def chain() -> Workload:
    workload = Workload().add("copy", copies, files_in=["in.txt"], files_out=[Path("out.txt")])
    return workload.add("count", counts, files_in="out.txt", after="copy")


def test_files_in_and_files_out_count_by_content() -> None:
    def both() -> list[JobState]:
        return list(states(ran(chain())).values())

    Path("in.txt").write_text("1")
    assert both() == [DONE, DONE]
    assert both() == [SKIPPED, SKIPPED]
    os.utime("in.txt", ns=(1, 1))
    assert both() == [SKIPPED, SKIPPED]
    Path("in.txt").write_text("2")
    assert both() == [DONE, DONE]
    assert both() == [SKIPPED, SKIPPED]
    Path("out.txt").unlink()
    assert both() == [DONE, SKIPPED]


def test_a_missing_input_or_output_file_fails_the_job_with_a_sentence(folder: Path) -> None:
    called = folder / "called"
    workload = Workload().add("reads", called.touch, files_in=["no.txt"])
    run = ran(workload.add("writes", ["true"], files_out=["gone.txt"]))
    assert states(run) == {"reads": FAILED, "writes": FAILED}
    assert not called.exists()
    assert row_of(run, "reads")["error"] == (
        f"its input file 'no.txt' (files_in) does not exist in '{folder}'; make it, or name the "
        "job that makes it as an upstream job"
    )
    assert "without writing its output file 'gone.txt'" in str(row_of(run, "writes")["error"])


def test_files_can_be_named_in_yaml(folder: Path) -> None:
    job = "command: [cp, in.txt, out.txt], files_in: [in.txt], files_out: out.txt"
    (folder / "flow.yaml").write_text(f"jobs: {{job: {{{job}}}}}")
    (folder / "in.txt").write_text("1")
    assert state(read_yaml(folder / "flow.yaml").workload) is DONE
    assert state(read_yaml(folder / "flow.yaml").workload) is SKIPPED
    (folder / "out.txt").unlink()
    assert state(read_yaml(folder / "flow.yaml").workload) is DONE


def test_files_that_are_no_paths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"has files_in=\[1\]; files_in must be a list of paths"):
        one(size_of, args=[1], files_in=[1]).validate()


def test_upstream_jobs_that_are_given_as_a_set_count_without_an_order() -> None:
    def fan(after: Any) -> Workload:
        workload = Workload().add("a", int).add("b", str)
        return workload.add("job", lambda b, a: [a, b], after=after)

    assert state(fan(["a", "b"])) is DONE
    assert state(fan(["b", "a"])) is SKIPPED
    assert state(fan({"a", "b"})) is SKIPPED


def test_the_parts_of_a_job_are_kept_with_its_result() -> None:
    Path("in.txt").write_text("1")
    ran(chain().add("job", size_of, args=[7], after=["copy"]))
    found = parts("job")
    assert list(found.arguments) == ["value"]
    assert list(found.upstream) == ["copy"]
    assert found.command == f"function {__name__}.size_of"
    assert list(found.code) == [found.command]
    assert parts("copy").made == ("out.txt",)
    assert set(parts("copy").files) == {"in.txt", "out.txt"}


def test_an_attempt_that_failed_may_have_overwritten_what_a_job_without_a_result_wrote() -> None:
    def write(text: str) -> None:
        Path("out").write_text(text)
        if text == "wrong":
            raise ValueError(text)

    for text, expected in (("right", DONE), ("wrong", FAILED), ("right", DONE), ("right", SKIPPED)):
        assert state(one(write, args=[text])) is expected
        ran(Workload().add("another", int))  # the journal forgets the jobs of the earlier run
    assert Path("out").read_text() == "right"


def test_a_path_that_a_job_returns_counts_by_content_and_not_by_time(folder: Path) -> None:
    def write() -> Path:
        Path("out").write_text("1")
        return Path("out")

    def read(write: Path) -> str:
        return write.read_text()

    workload = Workload().add("write", write).add("read", read, after="write")
    ran(workload)
    os.utime(folder / "out", (1, 1))
    assert states(ran(workload)) == {"write": SKIPPED, "read": SKIPPED}
    (folder / "out").write_text("2")
    os.utime(folder / "out", (1, 1))  # another content of the same size and time
    assert states(ran(workload)) == {"write": DONE, "read": SKIPPED}


def test_files_are_those_of_the_folder_in_which_the_run_was_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(text: str) -> int:
        Path("gate").read_text()  # waits until the gate is opened for writing
        return 1

    (folder / "elsewhere").mkdir()
    os.mkfifo("gate")
    for text in "12":
        monkeypatch.chdir(folder)
        RAW.write_text(text)
        workload = one(Path.read_text, args=[RAW], after="first").add("first", first, args=[text])
        run = workload.run(kind="transient", workers=1, store="store")
        monkeypatch.chdir(folder / "elsewhere")
        (folder / "gate").write_text("go on")
        assert run.wait().results["job"] == text


def test_a_relative_path_that_a_job_with_cwd_returns_is_in_that_folder(folder: Path) -> None:
    def write() -> Path:
        Path("out").write_text("right")
        return Path("out")

    (folder / "data").mkdir()
    (folder / "out").write_text("wrong")
    run = one(write, cwd="data").run(workers=1, store="store").wait()
    assert run.results["job"] == folder / "data" / "out"
