"""The commands of durable jobs: what they run, what they say, and their exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pyrite.cli import app
from pyrite.durable.client.overview import Overview, overview
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.opening import open_store

SECONDS = 60.0
DAGS = """
import time
from pathlib import Path
from pyrite import DAG, between
from pyrite import processors as p

def count(items, seconds=0.0):
    def slowly(n):
        time.sleep(seconds)
        return n % 5
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(items)))
    mapped = dag.vertex("map", p.map(slowly))
    counted = dag.vertex("count", p.group_and_accumulate(
        key=lambda n: n, initial=0, accumulate=lambda total, n: total + 1))
    write = dag.vertex("write", p.write_map("counts"))
    dag.edge(between(read, mapped))
    dag.edge(between(mapped, counted).distributed().partitioned(key=lambda n: n))
    dag.edge(between(counted, write))
    return dag

def quick():
    return count(100)

def slow():
    return count(1000, 0.002)

def endless():
    def never(total, n):
        Path("begun").touch()
        time.sleep(600)
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(10)))
    counted = dag.vertex("count", p.accumulate(0, never))
    write = dag.vertex("write", p.write_list("list"))
    dag.edge(between(read, counted).distributed().all_to_one())
    dag.edge(between(counted, write))
    return dag

def bad():
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(10)))
    mapped = dag.vertex("map", p.map(lambda n: 1 // (n - 5)))
    write = dag.vertex("write", p.write_list("list"))
    dag.edge(between(read, mapped))
    dag.edge(between(mapped, write))
    return dag

def cycle():
    dag = DAG()
    a, b = dag.vertex("a", p.map(str)), dag.vertex("b", p.map(str))
    dag.edge(between(a, b))
    dag.edge(between(b, a))
    return dag
"""


class Command:
    """A command as a process. Standard output and standard error are one stream."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pyrite", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        )

    def says(self, words: str) -> str:
        """The next line with these words. Waits for it."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} is not in {''.join(lines)!r}")

    def rest(self) -> str:
        return self.process.communicate(timeout=SECONDS)[0]

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """The exit code, and what the command says at its end."""
        self.process.send_signal(number)
        text = self.rest()
        return self.process.returncode, text


Start = Callable[..., Command]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as closing:

        def start(*arguments: str) -> Command:
            command = Command(*arguments)
            closing.callback(command.process.communicate)
            closing.callback(command.process.kill)
            return command

        yield start


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "dags.py").write_text(DAGS)
    return tmp_path / "jobs"


def run(*arguments: str) -> Result:
    """A command in this process."""
    return CliRunner().invoke(app, arguments)


def said(*arguments: str, code: int = 0) -> str:
    """What a command says, in one line."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def submitted(folder: Path, dag: str = "quick", *options: str) -> str:
    """The id of a job that nobody runs."""
    result = run("submit", f"dags.py:{dag}", "--durable", str(folder), "--no-wait", *options)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()[0]


def seen(folder: Path) -> Overview:
    store = open_store(folder)
    try:
        return overview(store)
    finally:
        store.close()


def counts(folder: Path) -> dict[int, int]:
    return dict(FolderCollections(folder).map("counts"))


def no_process_uses(folder: Path) -> bool:
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return not any(os.fsencode(folder) in line for line in lines)


# With processes


def test_submit_starts_what_a_folder_needs_and_waits(folder: Path, start: Start) -> None:
    command = start("submit", "dags.py:quick", "--durable", str(folder), "--peers", "2")
    text = command.rest()
    assert command.process.returncode == 0, text
    assert "starts a coordinator and 2 peers; they end with it" in text
    assert "completed in" in text
    assert counts(folder) == dict.fromkeys(range(5), 20)
    assert no_process_uses(folder)
    assert "completed" in said("jobs", "--durable", str(folder))


def test_a_failed_job_gives_exit_code_1_and_is_told_in_the_list(folder: Path, start: Start) -> None:
    command = start("submit", "dags.py:bad", "--durable", str(folder), "--peers", "1")
    text = command.rest()
    assert command.process.returncode == 1, text
    assert "failed in vertex 'map'" in text
    assert "item 5: ZeroDivisionError" in text
    assert "failed: in vertex 'map'" in said("jobs", "--durable", str(folder))


def test_peers_and_a_coordinator_run_a_job_although_a_peer_is_killed(
    folder: Path, start: Start
) -> None:
    place = ("--durable", str(folder))
    id = submitted(folder, "slow", "--members", "2")
    coordinator = start("coordinator", *place)
    peers = start("peers", "-n", "2", *place)
    first = peers.says("2 peers run for").split()[-2]
    coordinator.says(f"job '{id}' is running")
    os.kill(int(first), signal.SIGKILL)
    peers.says(f"the peer {first} has ended by signal 9; another is started")
    coordinator.says(f"job '{id}' is complete")
    assert counts(folder) == dict.fromkeys(range(5), 200)
    table = said("peers", "status", *place)
    assert "leads" in table
    assert table.count("idle") == 2
    assert peers.end(signal.SIGINT)[0] == 0
    assert coordinator.end(signal.SIGTERM)[0] == 0
    assert no_process_uses(folder)


def test_peers_in_a_long_function_end_within_seconds_and_the_job_goes_on(
    folder: Path, start: Start
) -> None:
    """A function of the user's that does not return must not hold up the end of its peer."""
    id = submitted(folder, "endless", "--members", "1")
    coordinator = start("coordinator", "--durable", str(folder))
    peers = start("peers", "-n", "2", "--durable", str(folder))
    coordinator.says(f"job '{id}' is running")
    store = open_store(folder)
    while not Path("begun").exists():
        store.changed(0.05)
    code, _ = peers.end(signal.SIGTERM)
    assert code == 0
    coordinator.says("died")
    (job,) = overview(store).jobs
    store.close()
    assert job.status == "running"
    assert "is cancelled" in said("cancel", id[:6], "--durable", str(folder))


def test_ctrl_c_leaves_a_job_and_says_how_to_look_at_it_and_cancel_it(
    folder: Path, start: Start
) -> None:
    command = start("submit", "dags.py:endless", "--durable", str(folder), "--peers", "1")
    id = command.says("is submitted").split()[1]
    command.says("starts a coordinator")
    code, text = command.end(signal.SIGINT)
    assert code == 130, text
    assert f"job {id} is not cancelled" in text
    assert f"pyrite peers --durable {folder}" in text
    assert f"pyrite cancel {id} --durable {folder}" in text
    assert no_process_uses(folder)
    text = said("cancel", "dags.py:endless", "--durable", str(folder))
    assert "no coordinator is running here, so this command starts one" in text
    assert f"job {id} ('dags.py:endless') is cancelled" in text
    text = said("cancel", id, "--durable", str(folder), code=1)
    assert f"job {id} ('dags.py:endless') has ended: it was cancelled" in text


# Without


def test_a_job_that_nobody_runs_is_submitted_with_a_hint_and_listed(folder: Path) -> None:
    result = run("submit", "dags.py:quick", "--durable", str(folder), "--no-wait", "--name", "n")
    assert result.exit_code == 0
    id, *_ = result.stdout.splitlines()
    assert "it goes on when somebody opens the folder, or runs:" in result.stderr
    text = said("jobs", "--durable", str(folder))
    assert f"{id} n starting" in text
    assert f"{id} waits for a coordinator: none is running" in text
    text = said("peers", "status", "--durable", str(folder))
    assert (
        f"no coordinator is running; start one with: pyrite coordinator --durable {folder}" in text
    )
    assert "no peer is running" in text
    assert "count + write #1 sequential 8 0 0" in text
    assert said("peers", "--durable", str(folder), "status") == text


def test_a_name_or_the_beginning_of_an_id_must_be_that_of_one_job(folder: Path) -> None:
    ids = [submitted(folder, "quick", "--name", "twin") for _ in range(2)]
    text = said("cancel", "twin", "--durable", str(folder), code=1)
    assert "'twin' may be 2 jobs" in text
    assert all(id in text for id in ids)
    text = said("cancel", "nobody", "--durable", str(folder), code=1)
    assert "there is no durable job 'nobody'; to see all, run: pyrite jobs --all --durable" in text


def test_only_the_last_ended_jobs_are_listed_unless_all_are_wanted(folder: Path) -> None:
    submitted(folder)
    store = open_store(folder)
    for number in range(25):
        store.create(paths.catalog(f"job{number}"), f'["name{number}",{number}]')
        store.create(paths.job(f"job{number}"), f'[{number},"complete",""]')
    store.close()
    text = said("jobs", "--durable", str(folder))
    assert "name24 completed" in text
    assert "name4 " not in text
    assert "5 ended jobs are not shown" in text
    assert "name4 completed" in said("jobs", "--all", "--durable", str(folder))


def test_a_cancel_that_comes_too_late_says_so(folder: Path) -> None:
    id = submitted(folder)
    store = open_store(folder)
    store.create(paths.job(id), '[1,"complete",""]')
    store.close()
    assert "has ended: it completed" in said("cancel", id, "--durable", str(folder), code=1)


@pytest.mark.parametrize("command", [("jobs",), ("cancel", "j"), ("peers", "status")])
def test_a_folder_that_does_not_exist_is_not_made(folder: Path, command: tuple[str, ...]) -> None:
    text = said(*command, "--durable", str(folder), code=1)
    assert "there are no durable jobs in" in text
    assert not folder.exists()


@pytest.mark.parametrize(
    ("dag", "message"),
    [
        ("nothing:dag", "there is no module 'nothing' here"),
        ("dags.py:nothing", "has nothing called 'nothing'"),
        ("dags.py:cycle", "cycle"),
        ("dags", "does not name a DAG"),
    ],
)
def test_what_is_no_dag_is_refused(folder: Path, dag: str, message: str) -> None:
    assert message in said("submit", dag, "--durable", str(folder), code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("jobs", "--durable", "x", "--durable-file", "y"), "give --durable or --durable-file"),
        (("jobs", "--durable", ""), "the place of durable jobs is empty"),
        (("jobs", "--durable", "http://host/x"), "begins with zk://"),
        (("peers", "--durable", "zk://h/c?secret=x"), "use --durable-file"),
        (("peers", "--durable", "zk://h/c?nats=n"), "--collections redis://"),
        (("peers", "--durable", "jobs", "--collections", "redis://h"), "are in the folder"),
        (("peers", "-n", "0", "--durable", "jobs"), "greater than or equal to 1"),
        (("peers", "-n", "3", "status", "--durable", "jobs"), "-n is for running peers"),
        (("submit", "dags.py:quick", "--durable", "zk://h/c?nats=n"), "collections="),
        (("submit", "dags.py:quick", "--durable", "j", "--name", ""), "name"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert message in " ".join(result.output.replace("│", "").split())
