"""The command line does what it says, and answers bad input with one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrite.cli import app

JOBS = """
from pyrite import DAG, AbstractProcessor, between
from pyrite import processors as p

dag = DAG()
numbers = dag.vertex("numbers", p.read_items(range(100)))
sink = dag.vertex("sink", p.write_list("doubled"))
double = dag.vertex("double", p.map(lambda n: n * 2))
dag.edge(between(numbers, double)).edge(between(double, sink))

def bad():
    dag = DAG()
    a = dag.vertex("a", p.read_items([1, 0]))
    dag.edge(between(a, dag.vertex("b", p.map(lambda n: 1 // n))))
    return dag

empty = DAG()
number = 3

class Forever(AbstractProcessor):
    def complete(self):
        return False

endless = DAG()
endless.vertex("endless", Forever)
"""


@pytest.fixture(autouse=True)
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_jobs.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delitem(sys.modules, "my_jobs", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_the_demo_draws_the_dag_and_prints_the_most_frequent_words() -> None:
    code, output = call("demo")
    assert code == 0
    assert "┃ distributed partitioned" in output
    assert "Both gave the same" in output
    assert "session" in output
    assert "stages" in output
    assert "stone" in output
    assert "river" in output


@pytest.mark.parametrize(
    ("name", "light"), [("my_jobs:dag", True), ("my_jobs.py:dag", True), ("my_jobs.py:dag", False)]
)
def test_run_runs_a_dag_and_shows_what_it_did(name: str, light: bool) -> None:
    code, output = call("run", name, *(["--light"] if light else ["--members", "1"]))
    assert code == 0
    assert "completed in" in output
    assert "list 'doubled': 100 items  [0, 2, 4, 6, 8]" in output


@pytest.mark.parametrize(
    ("format", "start"),
    [("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<svg"), ("text", "numbers")],
)
def test_show_draws_a_dag(format: str, start: str) -> None:
    code, output = call("show", "my_jobs:dag", "--format", format)
    assert code == 0
    assert output.startswith(start)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_jobs", "does not name a DAG; write module:name"),
        ("no_such:dag", "there is no module 'no_such'"),
        ("no_such.py:dag", "there is no file 'no_such.py'"),
        ("my_jobs:nothing", "has nothing called 'nothing'; it has dag, empty, endless"),
        ("my_jobs:number", "is not a DAG"),
        ("my_jobs:empty", "the DAG is empty"),
        (
            "my_jobs:bad",
            "failed in vertex 'b', processor 0, edge 'a -> b', item 0: ZeroDivisionError",
        ),
        ("..x:dag", "is not the name of a module"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_1(name: str, message: str) -> None:
    code, output = call("run", name, "--light")
    assert code == 1
    assert message in output.replace("\n", " ")
    assert "pyrite/engine" not in output  # the user's traceback is shown without ours


def test_ctrl_c_cancels_and_says_so(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "run", "my_jobs:endless", "--light"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    deadline = time.monotonic() + 20
    while not _has_thread(process.pid, at_least=2):
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert output.strip() == "cancelled"


def _has_thread(pid: int, at_least: int) -> bool:
    return len(os.listdir(f"/proc/{pid}/task")) >= at_least
