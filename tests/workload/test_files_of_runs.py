"""The files of programs, of attempts that failed and of earlier versions of a job, in runs."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import JobState, Run, Workload
from pyrite.workload.input.fingerprints import files
from pyrite.workload.masters import files_of_jobs
from tests.workload.conftest import states

DONE, SKIPPED = JobState.DONE, JobState.SKIPPED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(workload: Workload, store: Path | str = "store") -> Run:
    return workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(2), workers=2, store=store
    ).wait()


def found(command: Any, **options: Any) -> JobState:
    return states(ran(Workload().add("job", command, **options)))["job"]


def test_files_and_folders_in_words_of_a_program_count(folder: Path) -> None:
    workload = Workload().add("if", ["dd", "if=a.txt", "of=b.txt"]).add("folder", ["ls", "data"])
    for id, word in (("option", "--in=a.txt"), ("at", "@a.txt"), ("letter", "-Idata")):
        workload.add(id, [sys.executable, "-c", "", word])
    (folder / "data").mkdir()
    for text in "12":
        (folder / "a.txt").write_text(text)
        (folder / "data" / "x").write_text(text)
        assert set(states(ran(workload)).values()) == {DONE}
        assert set(states(ran(workload)).values()) == {SKIPPED}
        assert (folder / "b.txt").read_text() == text
    (folder / "b.txt").unlink()
    assert [id for id, state in states(ran(workload)).items() if state is DONE] == ["if"]


def test_a_program_with_a_folder_that_is_too_large_to_look_at_always_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MENTIONED_NAMES", 3)
    monkeypatch.setattr(files_of_jobs, "MENTIONED_NAMES", 3)
    (folder / "data").mkdir()
    for name in "abcd":
        (folder / "data" / name).touch()
    workload = Workload().add("job", ["ls", "data"])
    ran(workload)
    why = workload.plan("store").table()[0]["reasons"]
    assert "the folder data has more than 3 entries" in str(why)
    assert found(["ls", "data"]) is DONE
    assert [found(["ls", "data"], files_in=["data"]) for _ in range(2)] == [DONE, SKIPPED]


def test_a_program_runs_again_in_another_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other").mkdir()
    (folder / "fixed").mkdir()
    workload = Workload().add("here", ["touch", "made"]).add("function", int)
    workload.add("there", ["touch", "made"], cwd=folder / "fixed")
    ran(workload, folder / "store")
    monkeypatch.chdir("other")
    rows = {row["job"]: row for row in workload.plan(folder / "store").table()}
    assert "its working directory changed" in str(rows["here"]["reasons"])
    after = states(ran(workload, folder / "store"))
    assert after == {"here": DONE, "function": SKIPPED, "there": SKIPPED}
    assert Path("made").exists()


def test_what_an_attempt_wrote_before_it_failed_does_not_make_its_retry_run_again(
    folder: Path,
) -> None:
    script = "if [ -e flag ]; then echo full > $1; else touch flag; echo half > $1; exit 1; fi"
    (folder / "s.sh").write_text(script)
    options = {"retries": 1}
    assert found(["sh", "s.sh", "out.txt"], **options) is DONE
    assert found(["sh", "s.sh", "out.txt"], **options) is SKIPPED
    (folder / "out.txt").write_text("half")
    assert found(["sh", "s.sh", "out.txt"], **options) is DONE


def copy(source: Path, target: Path) -> str:
    text = source.read_text()
    target.write_text(text)
    if source.name == "b":
        source.write_text("edited")  # as a person might do meanwhile
    return text


def test_what_the_earlier_version_of_a_job_wrote_may_be_an_input_of_the_present_one(
    folder: Path,
) -> None:
    (folder / "a").write_text("1")
    assert found(copy, args=[Path("a"), Path("b")]) is DONE
    assert found(copy, args=[Path("b"), Path("c")]) is DONE  # b is edited while it runs
    assert found(copy, args=[Path("b"), Path("c")]) is DONE
    assert found(["cp", "a", "d"]) is DONE
    assert found(["sh", "-c", "echo edited > $0", "d"]) is DONE
    assert found(["sh", "-c", "echo edited > $0", "d"]) is DONE
    assert found(["sh", "-c", "echo edited > $0", "d"]) is SKIPPED


def test_a_file_that_a_job_wrote_before_its_other_arguments_changed_is_still_its_output(
    folder: Path,
) -> None:
    def write(month: int, target: Path) -> int:
        target.write_text(str(month))
        return month

    assert [found(write, args=[1, Path("out")]) for _ in range(2)] == [DONE, SKIPPED]
    assert [found(write, args=[2, Path("out")]) for _ in range(2)] == [DONE, SKIPPED]


def test_a_path_that_a_job_returns_counts_by_content_and_not_by_time(folder: Path) -> None:
    def write() -> list[Path]:
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / "x").write_text("1")
        (folder / "y").write_text("2")
        return [Path("data"), Path("y")]

    workload = Workload().add("write", write).add("read", str, after="write")
    workload.add("again", lambda write: write[1].read_text(), after="write")
    ran(workload)
    os.utime("y", (1, 1))
    os.utime("data/x", (1, 1))
    assert set(states(ran(workload)).values()) == {SKIPPED}
    (folder / "y").write_text("3")  # the same size and, next, the same time
    os.utime("y", (1, 1))
    assert states(ran(workload)) == {"write": DONE, "read": SKIPPED, "again": SKIPPED}


def test_elements_that_are_paths_count_by_content(folder: Path) -> None:
    def write() -> list[Path]:
        for name in "ab":
            (folder / name).write_text(name)
        return [Path("a"), Path("b")]

    workload = Workload().add("write", write)
    workload.map("size", lambda path: path.stat().st_size, over="write")
    ran(workload)
    (folder / "a").write_text("x")
    after = states(ran(workload))
    assert (after.pop("write"), set(after.values())) == (DONE, {SKIPPED})


def test_a_resumed_run_makes_outputs_that_are_gone_or_changed_again(folder: Path) -> None:
    workload = Workload().add("fail", ["cat", "there"])
    for name in ("kept", "gone", "changed"):
        write = ["sh", "-c", f"echo . >> {name}.log; echo 1 > {name}.txt"]
        workload.add(name, write, files_out=[f"{name}.txt"])
        workload.add(f"below-{name}", ["cp", f"{name}.txt", f"{name}.copy"], after=name)
    ran(workload)
    (folder / "gone.txt").unlink()
    (folder / "changed.txt").write_text("2\n")
    run = Run.resume("store", executor=lambda: ThreadPoolExecutor(2)).wait()
    assert {path.stem: path.read_text() for path in folder.glob("*.log")} == {
        "kept": ".\n",
        "gone": ".\n.\n",
        "changed": ".\n.\n",
    }
    assert (folder / "changed.copy").read_text() == "1\n"
    assert run.counts()[DONE] + run.counts().get(SKIPPED, 0) == 6
