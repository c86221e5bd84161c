"""The options of single jobs, for persistent, launched and transient workers."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from pyrite.workload import InvalidWorkload, JobState, RetryWait, Run, Secret, Workload
from pyrite.workload.input.fingerprints import Fingerprints
from pyrite.workload.system.memory import memory_of_family, usage_of_family
from pyrite.workload.workers.running import memory_watch
from pyrite.workload.yaml_file import read_yaml
from tests.workload import commands
from tests.workload.conftest import row_of, wait_until

PASSWORD = "hu5h-hu5h"


def by_launcher(function: Any, posts: Any) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, posts))


KINDS: dict[str, dict[str, Any]] = {
    "persistent": {},
    "launched": {"launcher": by_launcher},
    "transient": {"kind": "transient"},
}


def note_time_and_fail_until(path: str, times: int) -> None:
    commands.note(path, str(time.time()))
    if len(commands.lines(path)) <= times:
        raise RuntimeError("not yet")


def take_memory(size: int) -> None:
    print("taking much")
    taken = b"x" * size
    time.sleep(1000)
    print(len(taken))


def surroundings(name: str) -> tuple[str | None, str]:
    return os.environ.get(name), os.getcwd()


def use_secrets(password: str, *, nested: dict[str, list[str]]) -> tuple[int, list[int], str]:
    return len(password), [len(one) for one in nested["all"]], os.environ["TOKEN"][::-1]


def reject(password: str) -> None:
    raise ValueError(f"the server does not accept {password}")


class Ran(NamedTuple):
    run: Run
    folder: Path


@pytest.fixture(scope="module", params=KINDS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run with all options, for each kind of workers. The tests look at what became of it."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "script").write_text("echo $PLACE > here")
    env, secret = {"PLACE": "sea", "COUNT": 3}, Secret("DB_PASSWORD")
    times, wait = str(folder / "times"), RetryWait(0.2, jitter=0)
    grow = "import time; x = b'x' * 400_000_000; time.sleep(1000)"
    workload = Workload()
    workload.add("waits", note_time_and_fail_until, args=[times, 2], retries=2, retry_wait=wait)
    workload.add("set", surroundings, args=["PLACE"], env=env, cwd=folder)
    workload.add("not set", surroundings, args=["PLACE"], after=["set"])
    workload.add("program", ["sh", "script"], env=env, cwd=folder)
    workload.add("no folder", commands.nothing, cwd=folder / "nowhere")
    nested = {"nested": {"all": [secret, "open"]}}
    workload.add("uses", use_secrets, args=[secret], kwargs=nested, env={"TOKEN": secret})
    workload.add("fails", reject, args=[secret])
    workload.add("lacks", reject, args=[Secret("NOT_SET_ANYWHERE")])
    workload.add("grows", take_memory, args=[400_000_000], memory="300 MB", retries=1)
    workload.add("program grows", [sys.executable, "-c", grow], memory="300 MB")
    workload.add("small", commands.nothing, memory=1_000_000_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DB_PASSWORD", PASSWORD)
        run = workload.run(store=folder / "run", workers=2, **KINDS[request.param]).wait(60)
    return Ran(run, folder)


def test_a_job_waits_before_each_retry(ran: Ran) -> None:
    assert row_of(ran.run, "waits")["state"] is JobState.DONE
    first, second, third = map(float, commands.lines(ran.folder / "times"))
    assert second - first >= 0.2
    assert third - second >= 0.4


def test_env_and_cwd_are_those_of_the_job_and_of_no_other(ran: Ran) -> None:
    assert ran.run.results["set"] == ("sea", str(ran.folder))
    assert ran.run.results["not set"] == (None, os.getcwd())
    assert (ran.folder / "here").read_text() == "sea\n"
    error = str(row_of(ran.run, "no folder")["error"])
    assert error.startswith(f"its cwd= '{ran.folder / 'nowhere'}' is not a folder on ")


def test_a_secret_is_read_by_the_worker_and_is_not_in_the_store(ran: Ran) -> None:
    assert ran.run.results["uses"] == (9, [9, 4], PASSWORD[::-1])
    assert row_of(ran.run, "fails")["error"] == "ValueError: the server does not accept ***"
    assert "accept ***" in ran.run.traceback("fails")
    error = str(row_of(ran.run, "lacks")["error"])
    assert error.startswith("it needs the Secret 'NOT_SET_ANYWHERE'")
    files = [path for path in (ran.folder / "run").rglob("*") if path.is_file()]
    assert any(PASSWORD[::-1].encode() in path.read_bytes() for path in files)
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_a_job_that_uses_more_memory_than_it_may_is_stopped_and_fails(ran: Ran) -> None:
    for job, attempts in (("grows", 2), ("program grows", 1)):
        row = row_of(ran.run, job)
        assert row["state"] is JobState.FAILED
        assert row["attempt"] == attempts
        error = r"used \d+(\.\d)? MB, more than its memory= of 300 MB"
        assert re.fullmatch(error, str(row["error"]))
    assert row_of(ran.run, "small")["state"] is JobState.DONE
    assert "taking much" in ran.run.log("grows")


def problems_of(**options: Any) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        Workload().add("a", commands.nothing, **options).validate()
    return caught.value.problems


@pytest.mark.parametrize("value", [-1, "1", True, float("nan"), {"first": 1, "speed": 2}])
def test_a_wait_that_is_none_is_refused(value: Any) -> None:
    assert problems_of(retry_wait=value)[0].startswith("job 'a' has retry_wait=")
    with pytest.raises(ValueError, match="growth must be a number, 1 or more"):
        RetryWait(growth=0.5)


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


def test_only_the_name_of_a_secret_counts_and_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(value: str) -> object:
        monkeypatch.setenv("ONE", value)
        workload = Workload().add("a", len, args=[[Secret("ONE")]])
        run = workload.run(store=tmp_path / "run", workers=1).wait(60)
        return row_of(run, "a")["state"]

    assert state("old") is JobState.DONE
    assert state("new") is JobState.SKIPPED
    assert repr(Secret("ONE")) == "Secret('ONE')"
    assert Fingerprints().of([Secret("ONE")]) != Fingerprints().of([Secret("TWO")])


def test_amounts_in_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "night.yaml"
    path.write_text("memory: 4 GB\njobs:\n  a: {command: 'os:getcwd', cpus: 1, memory: 5 GB}\n")
    with pytest.raises(InvalidWorkload, match="has memory=5 GB, but all jobs together have 4 GB"):
        read_yaml(path)


def test_a_secret_in_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(
        "jobs:\n  a: {command: 'math:sqrt', args: [!secret A], env: {B: !secret C, D: 1}}\n"
    )
    (job,) = read_yaml(path).workload.jobs
    assert job.args == [Secret("A")]
    assert job.env == {"B": Secret("C"), "D": "1"}


def hold_until_all_hold(folder: str, name: str, others: int) -> int:
    """Ends when so many others run at the same time; returns how many did."""
    path = Path(folder)
    (path / name).touch()
    while len(list(path.iterdir())) < others:
        time.sleep(0.01)
    return others


def test_a_process_that_was_stopped_does_not_harm_the_next_job(tmp_path: Path) -> None:
    workload = Workload().add("a", take_memory, args=[400_000_000], memory="300 MB")
    workload.add("b", commands.nothing)
    run = workload.run(store=tmp_path / "run", kind="transient", workers=1, max_jobs=9).wait(60)
    assert row_of(run, "b")["state"] is JobState.DONE


def test_jobs_run_together_as_far_as_cores_and_memory_suffice(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    folder = str(tmp_path / "held")
    workload = Workload()
    for name in ("a", "b"):
        kwargs = {"folder": folder, "name": name, "others": 2}
        workload.add(name, hold_until_all_hold, kwargs=kwargs, cpus=1, memory="4 GB")
    workload.add("c", hold_until_all_hold, args=[folder, "c", 3], cpus=1.5)
    run = workload.run(store=tmp_path / "run", workers=3, cpus=2, memory="8 GB").wait(60)
    assert not run.failed()
    started, ended = row_of(run, "c")["started"], row_of(run, "a")["ended"]
    assert started >= ended  # type: ignore[operator]


def test_wrong_amounts_are_refused_before_the_start() -> None:
    assert problems_of(cpus=0)[0] == (
        "job 'a' has cpus=0; cpus must be a number of cores above 0, such as 2 or 0.5"
    )
    assert problems_of(memory="2 parsecs")[0] == (
        "job 'a' has memory='2 parsecs'; memory must be a text such as '2 GB' or '512 MB', or a "
        "number of bytes"
    )
    many = Workload().add("a", commands.nothing, cpus=3).add("b", commands.nothing, memory="2 GB")
    with pytest.raises(InvalidWorkload) as caught:
        many.run(cpus=2, memory="1 GB")
    assert caught.value.problems == [
        "job 'a' has cpus=3, but all jobs together have 2; run(cpus=...) sets another total",
        "job 'b' has memory=2 GB, but all jobs together have 1 GB; run(memory=...) sets another "
        "total",
    ]
    with pytest.raises(InvalidWorkload, match="memory must be a text such as"):
        many.run(memory="much")


def test_memory_that_processes_share_counts_once() -> None:
    taken = b"x" * 50_000_000
    alone = memory_of_family(os.getpid())
    ready, tell = os.pipe()
    wait, leave = os.pipe()
    children = []
    for _ in range(2):
        child = os.fork()
        if not child:
            os.write(tell, b"+")
            os.close(leave)
            os.read(wait, 1)
            os._exit(0)
        children.append(child)
        os.read(ready, 1)
    together = memory_of_family(os.getpid())
    apart = memory_of_family(os.getpid(), enough=1 << 60)
    grown = memory_of_family(os.getpid(), since=usage_of_family(os.getpid()))
    for file in (leave, wait, ready, tell):
        os.close(file)
    for child in children:
        os.waitpid(child, 0)
    assert apart > alone + 2 * len(taken)
    assert together < alone + len(taken)
    assert grown < len(taken) / 2  # processes that an earlier job left do not count either


def test_memory_that_was_taken_before_a_job_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)

    def look(*args: Any, **options: Any) -> int:
        found = memory_of_family(*args, **options)
        looks.release()
        return found

    monkeypatch.setattr(memory_watch, "memory_of_family", look)
    blamed: list[Exception] = []
    left = [b"x" * 100_000_000]
    before = usage_of_family(os.getpid())
    with memory_watch.watching(50_000_000, before, blamed.append):
        assert all(looks.acquire(timeout=60) for _ in range(2))
    assert not blamed
    with memory_watch.watching(50_000_000, before, blamed.append):
        left.append(b"x" * 100_000_000)
        wait_until(lambda: bool(blamed), 60)
    assert re.fullmatch(r"used \d+(\.\d+)? MB, more than its memory= of 50 MB", str(blamed[0]))


def test_tables_have_waits() -> None:
    rows = [
        {"job": "a", "command": "math:sqrt", "args": [1.0], "retry_wait": 2.5},
        {"job": "b", "command": "math:sqrt", "args": [1.0], "retry_wait": None},
    ]
    for table in (rows, pd.DataFrame(rows)):
        workload = Workload.from_table(table)
        workload.validate()
        assert [job.retry_wait for job in workload.jobs] == [2.5, None]


def test_a_secret_is_hidden_in_whatever_form_and_if_the_job_removed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(secret: str) -> None:
        os.environ.pop("TOKEN")
        raise KeyError(secret, {"it's": secret})

    monkeypatch.setenv("TOKEN", "a\n'b'\\é")
    workload = Workload().add("a", fail, args=[Secret("TOKEN")])
    threads: dict[str, Any] = {"kind": "transient", "executor": lambda: ThreadPoolExecutor(1)}
    run = workload.run(store=tmp_path / "run", **threads).wait()
    assert row_of(run, "a")["error"] == 'KeyError: ("***", {"it\'s": "***"})'
