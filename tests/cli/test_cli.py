"""The commands for DAGs, and their messages for wrong input."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pyrite.cli import app
from tests.workload.conftest import wait_until

Call = Callable[..., tuple[int, str]]

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

def parse(text):
    return int(text)

def raises():
    dag = DAG()
    lines = dag.vertex("lines", p.read_items(["1", "one"]))
    dag.edge(between(lines, dag.vertex("parse", p.map(parse))))
    return dag

def broken():
    return parse("one")

def needs(name):
    return dag

def exits():
    raise SystemExit(3)

def trace():
    raise ValueError("no master" + "\\n\\tat org.apache.spark.X.f(X.scala:1)" * 30)

def sleeps():
    import pathlib, time
    def nap(n):
        time.sleep(0.5)  # until then the command has submitted the job, and waits for it
        pathlib.Path("asleep").touch()
        time.sleep(1000)
    dag = DAG()
    dag.edge(between(dag.vertex("one", p.read_items([1])), dag.vertex("nap", p.map(nap))))
    return dag
"""


@pytest.fixture(autouse=True)
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_jobs.py").write_text(JOBS)
    (tmp_path / "nothing.py").write_text("")
    (tmp_path / "half.py").write_text("x = (")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delitem(sys.modules, "my_jobs", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def start(*arguments: str, stdout: Any = subprocess.PIPE) -> subprocess.Popen[str]:
    """Starts the command in another process. If stdout is a pipe, stderr goes there too."""
    return subprocess.Popen(
        [sys.executable, "-m", "pyrite", *arguments],
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout is subprocess.PIPE else subprocess.PIPE,
        text=True,
    )


def call_on_spark(*arguments: str) -> tuple[int, str]:
    """Like `call`, in another process, because this one may already have a Spark session."""
    with start(*arguments) as process:
        output, _ = process.communicate(timeout=100)
    return process.returncode, output


def test_the_demo_draws_the_dag_and_prints_the_most_frequent_words() -> None:
    code, output = call_on_spark("demo")
    assert code == 0
    assert "┃ distributed partitioned" in output
    assert "Both gave the same" in output
    assert "session" in output
    assert "stages" in output
    assert "stone" in output
    assert "river" in output


@pytest.mark.parametrize(
    ("call", "name", "option"),
    [
        (call, "my_jobs:dag", "--light"),
        (call, "my_jobs.py:dag", "--light"),
        (call_on_spark, "my_jobs.py:dag", "--members=1"),
    ],
)
def test_run_runs_a_dag_and_shows_what_it_did(call: Call, name: str, option: str) -> None:
    code, output = call("run", name, option)
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
        ("my_jobs.py", "write module:name, as in my_jobs.py:dag"),
        ("my_jobs:brokn", "did you mean 'broken'?"),
        ("nothing.py:dag", "and no DAG at all"),
        ("folder:dag", "'folder' is a folder; name a module in it"),
        (
            "my_jobs:needs",
            "cannot be called without arguments (missing a required argument: 'name')",
        ),
        ("my_jobs:exits", "it called sys.exit(3)"),
        ("half:dag", "cannot be loaded: SyntaxError: '(' was never closed (half.py, line 1)"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_1(name: str, message: str) -> None:
    code, output = call("run", name, "--light")
    assert code == 1
    assert message in output.replace("\n", " ")
    assert "pyrite/engine" not in output  # no frames of Pyrite in the traceback


@pytest.mark.parametrize(
    ("call", "option"),
    [
        (call, "--light"),
        pytest.param(call_on_spark, "--members=1", marks=pytest.mark.soak),
    ],
)
def test_an_error_in_a_users_function_is_shown_with_the_users_line_only(
    call: Call, option: str
) -> None:
    code, output = call("run", "my_jobs:raises", option)
    assert code == 1
    assert "failed in vertex 'parse'" in output
    assert "item 'one': ValueError: invalid literal for int()" in output
    assert "in parse\n    return int(text)\n" in output
    assert output.count('  File "') == 1


@pytest.mark.parametrize("command", ["run", "show"])
def test_an_error_in_the_function_that_makes_the_dag_is_shown_with_the_users_lines_only(
    command: str,
) -> None:
    code, output = call(command, "my_jobs:broken")
    assert code == 1
    assert output.startswith("error: 'my_jobs:broken' failed when it was called to make a DAG: Val")
    assert re.findall(r'File ".*my_jobs.py", line \d+, in (\w+)', output) == ["broken", "parse"]
    assert output.count('  File "') == 2


def test_java_stack_frames_are_left_out() -> None:
    code, output = call("show", "my_jobs:trace")
    assert code == 1
    assert "no master\n" in output
    assert "scala" not in output.partition("Traceback")[0]
    assert "pyrite --verbose" in output


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("locl[2]", "'locl[2]' is not the address of a Spark master; use local[*]"),
        ("spark://localhost:1", "there is no Spark master at spark://localhost:1"),
        ("sc://localhost:1", "no Spark Connect server answers at sc://localhost:1"),
    ],
)
def test_a_wrong_master_gets_one_sentence_and_exit_code_1(master: str, message: str) -> None:
    code, output = call_on_spark("run", "my_jobs:dag", "--master", master)
    assert code == 1
    assert message in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "my_jobs:dag", "--light", "--master", "local[2]"],
        ["run", "my_jobs:dag", "--light", "--members", "2"],
        ["run", "my_jobs:dag", "--threads", "2"],
        ["run", "my_jobs:dag", "--members", "0"],
        ["show", "my_jobs:dag", "--format", "png"],
        ["walk"],
    ],
)
def test_wrong_usage_gets_exit_code_2(arguments: list[str]) -> None:
    code, output = call(*arguments)
    assert code == 2
    assert "Traceback" not in output


def test_an_unexpected_error_is_reported_in_two_lines() -> None:
    with (
        open("/dev/full", "w") as full,
        start("run", "my_jobs:dag", "--light", stdout=full) as done,
    ):
        _, errors = done.communicate(timeout=20)
    assert done.returncode == 1
    assert errors.startswith("error: unexpected OSError: [Errno 28] No space left on device (")
    assert len(errors.splitlines()) == 2


@pytest.mark.parametrize("command", [["show", "my_jobs:dag"], ["run", "my_jobs:dag", "--light"]])
def test_a_closed_output_pipe_is_not_an_error(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed, start(*command, stdout=closed) as done:
        _, errors = done.communicate(timeout=20)
    assert errors == ""


def test_ctrl_c_cancels_and_says_so() -> None:
    with start("run", "my_jobs:endless", "--light") as process:
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) >= 2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert output.splitlines()[-1] == "cancelled"


def test_a_second_ctrl_c_ends_a_job_that_does_not_stop(tmp_path: Path) -> None:
    with start("run", "my_jobs:sleeps", "--light") as process:
        wait_until((tmp_path / "asleep").exists)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert "press Ctrl-C again" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == 130


def test_ctrl_c_does_not_wait_for_spark_to_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:  # it never answers
        port = master.getsockname()[1]
        with start("run", "my_jobs:dag", "--master", f"spark://127.0.0.1:{port}") as process:
            master.settimeout(60)
            connection, _ = master.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=10) == 130
                output, _ = process.communicate(timeout=20)
    assert output.splitlines()[-1] == "cancelled"


def test_a_log_format_that_is_not_known_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A nightly command does not fail because of a setting of its log."""
    monkeypatch.setenv("PYRITE_LOG", "info")
    assert CliRunner().invoke(app, ["version"]).exit_code == 0
    assert "PYRITE_LOG must be 'json' or 'text'; got 'info'" in caplog.text
