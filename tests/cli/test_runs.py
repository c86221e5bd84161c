"""`jobs`, `cancel` and `top`: what runs and what ran, as other processes see it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrite import Pipeline
from pyrite import processors as p
from pyrite.cli import app
from pyrite.cli.runs.snapshot import busiest_of, of_view, of_workload
from pyrite.instances import Instance
from pyrite.job import Execution
from pyrite.watching.recorders import open_recorder
from pyrite.watching.recording import Recorder
from pyrite.watching.views import RunView, VertexView
from pyrite.workload import Schedule, Workload
from tests.workload.conftest import wait_until


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYRITE_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def recorder(folder: Path) -> Iterator[Recorder]:
    with open_recorder() as recording:
        yield recording.recorder


@pytest.fixture
def running(pyr: Instance, recorder: Recorder) -> Iterator[Execution]:
    """A job that is in the journal, and waits until it is cancelled."""
    go = threading.Event()
    pipe = Pipeline()
    numbers = pipe.read_from(range(5), name="numbers")
    numbers.map(lambda n: go.wait(0.02) and n, name="waits").write_to(p.noop(), name="out")
    endless = pipe.read_from(iter(int, 1), name="endless")
    endless.map(lambda n: go.wait(0.01), name="slowly").write_to(p.noop(), name="end")
    execution = pyr.new_light_job(pipe).execute()
    recorder.look()
    wait_until(lambda: recorder.look() or '"running"' in call("jobs", "--json"))
    yield execution
    go.set()
    execution.cancel()
    execution.exception(10)


def test_without_runs_there_is_nothing_to_list_and_nothing_to_cancel(folder: Path) -> None:
    assert call("jobs") == "there are no jobs"
    assert json.loads(call("jobs", "--json")) == {"jobs": [], "total": 0}
    assert "there is no job 'x'; to see all, run: pyrite jobs --all" in call("cancel", "x", code=1)
    assert "no job runs" in call("top")
    assert not folder.exists()


def test_a_job_that_a_command_has_run_is_listed_even_if_it_was_short(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "short.py").write_text(
        "from pyrite import Pipeline, processors as p\n"
        "pipe = Pipeline()\n"
        "pipe.read_from([1]).write_to(p.noop())\n"
    )
    call("run", "short.py:pipe", "--light")
    assert "short.py:pipe completed light" in call("jobs")


def test_a_failed_job_is_listed_with_its_failure(pyr: Instance, recorder: Recorder) -> None:
    pipe = Pipeline()
    pipe.read_from([1, 0]).map(lambda n: 1 // n, name="divide").write_to(p.noop(), name="out")
    execution = pyr.new_light_job(pipe).execute()
    execution.exception(10)
    recorder.look()
    result = CliRunner().invoke(app, ["jobs"], env={"COLUMNS": "60"})
    assert f"{execution.id}  read_items … out  failed" in result.output
    assert all(len(line) <= 60 for line in result.output.splitlines()[:2])
    text = call("jobs", "--state", "failed")
    assert f"{execution.id} read_items … out failed" in text
    assert "ZeroDivisionError" in text
    assert call("jobs", "--state", "running") == "there are no jobs"
    assert "has ended: it failed" in call("cancel", execution.id, code=1)


def test_a_running_job_is_listed_and_cancelled_by_the_beginning_of_its_id(
    running: Execution,
) -> None:
    (row,) = json.loads(call("jobs", "--json"))["jobs"]
    assert (row["id"], row["state"], row["kind"]) == (running.id, "running", "light")
    found = json.loads(call("cancel", running.id[:8], "--json"))
    assert (found["id"], found["state"]) == (running.id, "cancelled")
    assert running.cancelled()


def test_top_shows_what_runs_and_its_busiest_vertex(running: Execution) -> None:
    text = call("top", "--once")
    assert text.startswith("1 running, 0 ended lately")
    assert "numbers … end" in text or running.id in text
    (row,) = json.loads(call("top", "--json"))["jobs"]
    assert (row["id"], row["is_open"]) == (running.id, True)


def test_top_shows_workloads(folder: Path, tmp_path: Path) -> None:
    jobs = [{"job": "a", "command": int}, {"job": "b", "command": int}]
    Workload.from_table(jobs).run(
        Schedule([("a", "b")]), workers=1, kind="transient", store=tmp_path / "my run"
    ).wait()
    text = call("top", "--workload", str(tmp_path / "my run"))
    assert "my run ended" in text
    assert "2 of 2" in text


def test_top_in_a_terminal_ends_with_q(folder: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "top"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    seen = b""
    while b"press q to end" not in seen:
        seen += os.read(ours, 4096)
    os.write(ours, b"q")
    assert process.wait(20) == 0
    os.close(ours)


def test_the_busiest_vertex_is_the_one_that_was_busy_longest() -> None:
    vertices = [
        VertexView(name="waits"),
        VertexView(name="many", received=99, busy_seconds=1.0),
        VertexView(name="slow", received=1, busy_seconds=2.0),
    ]
    found = busiest_of(vertices)
    assert found is not None
    assert found.name == "slow"
    assert busiest_of([VertexView(name="waits")]) is None


def test_of_vertices_in_one_loop_the_first_is_named_with_how_many_others() -> None:
    """They have the time of the loop, so it cannot be said which of them needs it."""
    loop = ("numbers", "slow", "count")
    vertices = [
        VertexView(
            name=name,
            received=n + 1,
            busy_seconds=2.0,
            fused_with=tuple(other for other in loop if other != name),
        )
        for n, name in enumerate(loop)
    ]
    view = RunView(
        id="1",
        job_id="2",
        name="words",
        kind="light",
        state="running",
        submitted=1.0,
        vertices=(*vertices, VertexView(name="wide", busy_seconds=6.0, processor_count=8)),
    )
    assert of_view(view).busiest == "numbers + 2"


def test_a_row_of_a_workload_counts_the_jobs_that_have_ended() -> None:
    counts = {"DONE": 3, "FAILED": 1, "RUNNING": 2, "WAITING": 4}
    row = of_workload(
        {
            "key": "1",
            "label": "nightly",
            "phase": "running",
            "started": None,
            "seconds": 3.0,
            "counts": counts,
        }
    )
    assert (row.done, row.busiest, row.is_open) == ("4 of 10", "2 running", True)


def test_durable_and_runs_are_not_given_together() -> None:
    assert "cannot be given together" in call(
        "jobs", "--durable", "x", "--runs", "y", code=2
    ).replace("│ ", "")
