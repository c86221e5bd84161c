"""Jobs see their own data and their own folder, whatever ran before in their worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pytest

from pyrite.dag import DAG, between, from_
from pyrite.processors import read_items, write_files, write_list
from pyrite.workload import JobState, Run, Secret, Workload
from pyrite.workload.input.commands.command import Call, RunDag
from pyrite.workload.storage import encoding
from pyrite.workload.workers.running.reuse import can_be_reused
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


def test_a_worker_in_which_many_files_stay_open_is_replaced(tmp_path: Path) -> None:
    code = (
        "import os, resource, sys\n"
        "from pyrite.workload import Workload\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
        "workload = Workload()\n"
        "for n in range(300): workload.add(str(n), os.open, args=['/dev/null', os.O_RDONLY])\n"
        "print(dict(workload.run(workers=1, store=sys.argv[1]).wait().counts()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "{<JobState.DONE: 'DONE'>: 300}\n", done.stderr


def test_values_of_secrets_are_found_in_dicts_of_any_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "open sesame")
    given = defaultdict[str, Any](list, {"word": Secret("WORD")})
    workload = Workload().add("j", lambda d: (type(d).__name__, d["word"]), args=[given])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["j"] == ("defaultdict", "open sesame")


def test_a_pure_path_in_a_result_need_not_exist(tmp_path: Path) -> None:
    workload = Workload().add("j", lambda: PurePosixPath("/remote/x"))
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["j"] == PurePosixPath("/remote/x")


def test_tables_may_have_arrays_of_upstream_jobs_and_numbers_that_are_missing() -> None:
    table = pd.DataFrame({"job": ["a", "b"], "command": ["time:time"] * 2, "memory": [1e6, None]})
    table["after"] = [pd.Series([], dtype=object).to_numpy(), pd.Series(["a"]).to_numpy()]
    first, second = Workload.from_table(table).jobs
    assert (first.memory, first.after, second.after) == (1_000_000, (), ("a",))


def test_the_result_of_a_dag_that_writes_files_does_not_tell_what_it_did() -> None:
    dag = DAG()
    source = dag.vertex("source", read_items([1]))
    sink = dag.vertex("sink", write_list("numbers"))
    dag.edge(between(source, sink))
    assert not RunDag(dag, True).acts_outside
    files = dag.vertex("files", write_files("out"))
    dag.edge(from_(source, 1).to(files))
    assert RunDag(dag, True).acts_outside


def test_a_large_result_is_not_read_to_know_whether_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = Workload().add("large", bytes, args=[2_000_000])
    store = tmp_path / "run"
    kind: dict[str, Any] = {"kind": "transient", "executor": lambda: ThreadPoolExecutor(1)}
    workload.run(workers=1, store=store, **kind).wait()
    monkeypatch.setattr(encoding, "digest", None)  # it would be called to check the content
    assert workload.run(workers=1, store=store, **kind).wait().counts() == {JobState.SKIPPED: 1}
    (file,) = (store / "segments").glob("*.pickle")
    file.write_bytes(b"cut off")
    monkeypatch.undo()
    assert workload.run(workers=1, store=store, **kind).wait().counts() == {JobState.DONE: 1}
