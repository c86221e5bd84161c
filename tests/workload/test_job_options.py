"""The options of single jobs, for persistent, launched and transient workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pyrite.workload import InvalidWorkload, JobState, RetryWait, Run, Secret, Workload
from pyrite.workload.yaml_file import read_yaml
from tests.workload import commands
from tests.workload.conftest import row_of

Start = Callable[[Workload], Run]


def by_launcher(function: Any, posts: Any) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, posts))


KINDS: dict[str, dict[str, Any]] = {
    "persistent": {},
    "launched": {"launcher": by_launcher},
    "transient": {"kind": "transient"},
}


@pytest.fixture(params=KINDS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    def run(workload: Workload) -> Run:
        options = {"workers": 2, "store": tmp_path / "run", **KINDS[request.param]}
        return workload.run(**options).wait(60)

    return run


def note_time_and_fail_until(path: str, times: int) -> None:
    commands.note(path, str(time.time()))
    if len(commands.lines(path)) <= times:
        raise RuntimeError("not yet")


def problems_of(**options: Any) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        Workload().add("a", commands.nothing, **options).validate()
    return caught.value.problems


def test_a_job_waits_before_each_retry(tmp_path: Path, start: Start) -> None:
    times = str(tmp_path / "times")
    wait = RetryWait(0.2, jitter=0)
    run = start(
        Workload().add("a", note_time_and_fail_until, args=[times, 2], retries=2, retry_wait=wait)
    )
    assert row_of(run, "a")["state"] is JobState.DONE
    first, second, third = map(float, commands.lines(times))
    assert second - first >= 0.2
    assert third - second >= 0.4


@pytest.mark.parametrize("value", [-1, "1", True, float("nan"), {"first": 1, "speed": 2}])
def test_a_wait_that_is_none_is_refused(value: Any) -> None:
    assert problems_of(retry_wait=value)[0].startswith("job 'a' has retry_wait=")
    with pytest.raises(ValueError, match="growth must be a number, 1 or more"):
        RetryWait(growth=0.5)


def surroundings(name: str) -> tuple[str | None, str]:
    return os.environ.get(name), os.getcwd()


def test_env_and_cwd_are_those_of_the_job_and_of_no_other(tmp_path: Path, start: Start) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "script").write_text("echo $PLACE > here")
    env = {"PLACE": "sea", "COUNT": 3}
    workload = Workload()
    workload.add("set", surroundings, args=["PLACE"], env=env, cwd=folder)
    workload.add("not set", surroundings, args=["PLACE"], after=["set"])
    workload.add("program", ["sh", "script"], env=env, cwd=folder)
    workload.add("no folder", commands.nothing, cwd=tmp_path / "nowhere")
    run = start(workload)
    assert run.results["set"] == ("sea", str(folder))
    assert run.results["not set"] == (None, os.getcwd())
    assert (folder / "here").read_text() == "sea\n"
    error = str(row_of(run, "no folder")["error"])
    assert error.startswith(f"its cwd= '{tmp_path / 'nowhere'}' is not a folder on ")


def test_a_job_runs_again_when_its_env_its_cwd_or_the_files_there_change(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("true")

    def state(**options: Any) -> object:
        workload = Workload().add("a", ["sh", "script"], **{"cwd": tmp_path, **options})
        run = workload.run(store=tmp_path / "run", workers=1).wait(60)
        return row_of(run, "a")["state"]

    assert state() is JobState.DONE
    assert state() is JobState.SKIPPED
    assert state(env={"A": "1"}) is JobState.DONE
    (tmp_path / "script").write_text("true; true")
    assert state(env={"A": "1"}) is JobState.DONE


def test_a_function_in_a_thread_cannot_have_an_env_but_a_program_can(tmp_path: Path) -> None:
    workload = Workload().add("f", commands.nothing, env={"A": "1"})
    workload.add("p", ["sh", "-c", "test $A = 1"], env={"A": "1"})
    run = workload.run(
        store=tmp_path / "run", kind="transient", executor=lambda: ThreadPoolExecutor(2)
    ).wait(60)
    assert "all threads of a process share these" in str(row_of(run, "f")["error"])
    assert row_of(run, "p")["state"] is JobState.DONE


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"env": ["A"]}, "has env=['A']; env must be a dict"),
        ({"env": {"A=": "1"}}, "the name of an environment variable is a str without '='"),
        ({"env": {"A": True}}, "has env={'A': True}; the value of an environment variable is"),
        ({"cwd": 3}, "has cwd=3; cwd must be the path of a folder"),
    ],
)
def test_a_wrong_env_or_cwd_is_refused(options: dict[str, Any], problem: str) -> None:
    assert problem in problems_of(**options)[0]


def use_secrets(password: str, *, nested: dict[str, list[str]]) -> tuple[int, list[int], str]:
    return len(password), [len(one) for one in nested["all"]], os.environ["TOKEN"][::-1]


def reject(password: str) -> None:
    raise ValueError(f"the server does not accept {password}")


def test_a_secret_is_read_by_the_worker_and_is_not_in_the_store(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hu5h-hu5h")
    secret = Secret("DB_PASSWORD")
    nested = {"nested": {"all": [secret, "open"]}}
    workload = Workload()
    workload.add("uses", use_secrets, args=[secret], kwargs=nested, env={"TOKEN": secret})
    workload.add("fails", reject, args=[secret])
    workload.add("lacks", reject, args=[Secret("NOT_SET_ANYWHERE")])
    run = start(workload)
    assert run.results["uses"] == (9, [9, 4], "h5uh-h5uh")
    assert row_of(run, "fails")["error"] == "ValueError: the server does not accept ***"
    assert "accept ***" in run.traceback("fails")
    error = str(row_of(run, "lacks")["error"])
    assert error.startswith("it needs the Secret 'NOT_SET_ANYWHERE'")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"hu5h-hu5h" in path.read_bytes()]


def test_only_the_name_of_a_secret_counts_and_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(name: str, value: str) -> object:
        monkeypatch.setenv(name, value)
        workload = Workload().add("a", len, args=[[Secret(name)]])
        run = workload.run(store=tmp_path / "run", workers=1).wait(60)
        return row_of(run, "a")["state"]

    assert state("ONE", "old") is JobState.DONE
    assert state("ONE", "new") is JobState.SKIPPED
    assert state("TWO", "new") is JobState.DONE
    assert repr(Secret("ONE")) == "Secret('ONE')"


def test_a_secret_in_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(
        "jobs:\n  a: {command: 'math:sqrt', args: [!secret A], env: {B: !secret C, D: 1}}\n"
    )
    (job,) = read_yaml(path).workload.jobs
    assert job.args == [Secret("A")]
    assert job.env == {"B": Secret("C"), "D": 1}


def test_tables_have_waits() -> None:
    rows = [
        {"job": "a", "command": "math:sqrt", "args": [1.0], "retry_wait": 2.5},
        {"job": "b", "command": "math:sqrt", "args": [1.0], "retry_wait": None},
    ]
    for table in (rows, pd.DataFrame(rows)):
        workload = Workload.from_table(table)
        workload.validate()
        assert [job.retry_wait for job in workload.jobs] == [2.5, None]
