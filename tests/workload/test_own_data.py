"""Jobs see their own data and their own folder, whatever ran before in their worker."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from pyrite.workload import Run, Workload
from pyrite.workload.input.commands import Call
from pyrite.workload.workers.reuse import can_be_reused
from tests.workload import commands


def add_to(numbers: list[int], n: int) -> int:
    numbers.append(n)
    return len(numbers)


def test_what_a_job_changes_in_the_data_of_its_function_is_not_there_for_the_next_job(
    tmp_path: Path,
) -> None:
    numbers: list[int] = []
    workload = Workload()
    for n in range(3):
        workload.add(f"partial{n}", partial(add_to, []), kwargs={"n": n})
        workload.add(f"closure{n}", lambda: (numbers.append(1), len(numbers))[1])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert set(run.results.values()) == {1}


def test_a_function_without_data_is_loaded_once() -> None:
    limit, found = 3, [0]
    assert can_be_reused(Call(commands.nothing))
    assert can_be_reused(Call(lambda: limit + 1))
    assert not can_be_reused(Call(lambda: found))
    assert not can_be_reused(Call(lambda into=[]: into))


def write_out() -> Path:
    Path("out.txt").write_text("right")
    return Path("out.txt")


def test_a_path_that_a_job_returns_is_relative_to_its_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("out.txt").write_text("wrong")
    workload = Workload().add("f", write_out, cwd="data")
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["f"] == tmp_path / "data" / "out.txt"


def test_launched_workers_and_replays_have_the_working_directory_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    workload = Workload().add("where", os.getcwd)
    with ThreadPoolExecutor(1) as pool:
        run = workload.run(workers=1, launcher=pool.map, store=tmp_path / "run")
        monkeypatch.chdir(tmp_path)  # before the launched worker starts
        run.wait()
    assert run.results["where"] == str(tmp_path / "here")
    assert Run.attach(tmp_path / "run").replay("where") == str(tmp_path / "here")
    assert os.getcwd() == str(tmp_path)
