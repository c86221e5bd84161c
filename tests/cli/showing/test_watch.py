"""Progress while a command waits: a picture in a real terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.cli import app
from pyrite.cli.showing import watch
from pyrite.cli.showing.watch import Watch
from pyrite.instances import Instance
from pyrite.job import Execution
from pyrite.watching.observing import view_of
from pyrite.watching.views import RunView

JOBS = """
import pathlib, time
from pyrite import DAG, Pipeline, between
from pyrite import processors as p

def slowly(n):
    while n == 99 and not pathlib.Path("go").exists():
        time.sleep(0.05)
    return n

def pipe():
    pipe = Pipeline()
    numbers = pipe.read_from(range(100), name="numbers").map(slowly, name="slowly")
    numbers.write_to(p.write_list("out"), name="out")
    return pipe

def bad():
    pipe = Pipeline()
    pipe.read_from([1, 0]).map(lambda n: 1 // n, name="divide").write_to(p.noop())
    return pipe

print("loaded")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    Path("go").touch()
    result = CliRunner().invoke(app, ["run", *arguments, "--light"])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def running(pyr: Instance) -> Iterator[Execution]:
    """A job that has passed 10 items on, and waits."""
    here, go = threading.Event(), threading.Event()

    def last(n: int) -> int:
        if n == 9:
            here.set()
            go.wait(20)
        return n

    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(10)))
    dag.edge(between(numbers, dag.vertex("last", p.map(last))))
    execution = pyr.new_light_job(dag).execute()
    assert here.wait(20)
    yield execution
    go.set()
    execution.result(20)


def test_a_terminal_shows_each_vertex_with_its_rate(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "run", "jobs.py:pipe", "--light"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    seen = ""
    while "running, " not in seen:
        seen += os.read(ours, 4096).decode()
    (folder / "go").touch()
    picture = seen.partition("vertex")[2]
    assert all(word in picture for word in ("numbers", "slowly", "/s"))
    while "completed in" not in seen:
        seen += os.read(ours, 4096).decode()
    assert process.wait(20) == 0
    os.close(ours)


def test_without_a_terminal_a_line_tells_how_far_the_job_is(
    running: Execution, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "LONGEST_PAUSE_SECONDS", 0.0)
    with Watch(running) as watching:
        watching.look()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("numbers … last: running for ")
    assert len(err.splitlines()) == 1


def test_a_job_is_not_looked_at_before_a_line_is_due(
    running: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view of a large job takes time from the job."""
    monkeypatch.setattr(watch, "view_of", lambda execution: pytest.fail("it was looked at"))
    with Watch(running) as watching:
        watching.look()


def test_a_view_that_takes_long_is_not_taken_again_at_once(
    running: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def slowly(execution: Execution) -> RunView:
        looks.append(time.monotonic())
        while time.monotonic() < looks[-1] + 0.02:
            pass
        return view_of(execution)

    monkeypatch.setattr(watch, "FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "LONGEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "view_of", slowly)
    with Watch(running) as watching:
        while len(looks) < 2:
            watching.look()
    assert looks[1] - looks[0] >= 10 * 0.02


def test_a_quiet_watch_shows_nothing(
    running: Execution, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "FIRST_LINE_SECONDS", 0.0)
    with Watch(running, quiet=True) as watching:
        watching.look()
    assert capsys.readouterr() == ("", "")


def test_quiet_prints_nothing_if_all_is_well(folder: Path) -> None:
    assert run("jobs.py:pipe", "--quiet") == (0, "loaded\n", "")


def test_quiet_prints_errors(folder: Path) -> None:
    code, _, errors = run("jobs.py:bad", "-q")
    assert code == 1
    assert "ZeroDivisionError" in errors


def test_json_is_one_document_of_the_run(folder: Path) -> None:
    code, output, errors = run("jobs.py:pipe", "--json")
    found = json.loads(output)
    assert code == 0
    assert errors == "loaded\n"
    assert (found["state"], found["kind"], found["items_in"], found["items_out"]) == (
        "completed",
        "light",
        100,
        100,
    )
    assert [vertex["name"] for vertex in found["vertices"]] == ["numbers", "slowly", "out"]
    assert found["collections"] == [{"kind": "list", "name": "out", "items": 100}]


def test_json_of_a_failed_run_has_the_error_and_the_failure(folder: Path) -> None:
    code, output, _ = run("jobs.py:bad", "--json")
    found = json.loads(output)
    assert code == 1
    assert found["state"] == "failed"
    assert "ZeroDivisionError" in found["error"]
    assert (found["failure"]["vertex"], found["failure"]["item"]) == ("divide", "0")


def test_json_of_a_command_that_cannot_run_is_its_error(folder: Path) -> None:
    code, output, _ = run("jobs.py:nothing", "--json")
    assert code == 1
    assert "has nothing called 'nothing'" in json.loads(output)["error"]
