"""The commands for workloads, and their messages for wrong input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyrite.workload import Run
from tests.workload import commands
from tests.workload.conftest import processes_of, wait_until


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYRITE_TEST", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.py").write_text(
        "def load():\n    print('loading')\n    return [1, 2, 3]\n\ndef total(load):\n    return "
        "sum(load)\n\n"
        "def bad(load):\n    raise ValueError('bad data')\n"
    )
    return tmp_path


def pyrite(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pyrite", "workload", *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )


def write(folder: Path, text: str) -> None:
    (folder / "jobs.yaml").write_text(text)


GOOD = """
workers: 2
jobs:
  load: steps:load
  total: {command: "steps:total", after: load}
  hello: [echo, "hello from a program"]
"""


def test_the_jobs_of_a_yaml_file_run_once_and_are_then_up_to_date(folder: Path) -> None:
    write(folder, GOOD)
    done = pyrite("run", "jobs.yaml")
    assert done.returncode == 0, done.stderr
    assert "3 done" in done.stdout
    assert Run.attach("jobs.run").results["total"] == 6
    assert "3 skipped" in pyrite("run", "jobs.yaml").stdout
    assert "3 done" in pyrite("run", "jobs.yaml", "--rerun").stdout
    assert pyrite("log", "jobs.run", "hello").stdout == "hello from a program\n"


def test_a_failed_job_gives_exit_code_1_and_a_hint_how_to_see_its_log(folder: Path) -> None:
    write(folder, GOOD + "  bad: {command: 'steps:bad', after: load}\n")
    done = pyrite("run", "jobs.yaml", "--store", "elsewhere")
    assert done.returncode == 1
    assert "ValueError: bad data" in done.stdout
    assert f"pyrite workload log {folder}/elsewhere -- bad" in done.stdout
    shown = pyrite("log", "elsewhere", "bad")
    assert "ValueError: bad data" in shown.stderr


def test_the_schedule_may_be_a_section_of_its_own(folder: Path) -> None:
    write(
        folder,
        "jobs:\n  - {job: load, command: 'steps:load'}\n  - {job: total, command: "
        "'steps:total'}\nschedule:\n  - {from: load, to: total}\n",
    )
    assert "2 done" in pyrite("run", "jobs.yaml").stdout


def test_a_python_file_with_a_workload_is_run(folder: Path) -> None:
    (folder / "night.py").write_text(
        "from pyrite.workload import Workload\nworkload = Workload()\n\n"
        "@workload.job\ndef a():\n    return 2\n\n@workload.job\ndef b(a):\n    return a + "
        "1\n\ndef made():\n    return workload\n"
    )
    assert "2 done" in pyrite("run", "night.py").stdout
    assert "2 skipped" in pyrite("run", "night.py:made").stdout
    assert Run.attach("night.run").results["b"] == 3
    assert "has nothing called 'morning'" in pyrite("run", "night.py:morning").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload = 3", "'night.py:workload' is not a Workload, nor a function that returns one"),
        ("def workload():\n    return {}['a']", "to make a Workload: KeyError: 'a'"),
        ("def workload(n):\n    pass", "cannot be called without arguments"),
        (
            "from pyrite.workload import Workload\nworkload = Workload()\nschedule = [('a', 'b')]",
            "'schedule' in 'night.py' must be a Schedule",
        ),
    ],
)
def test_a_python_file_without_a_good_workload_is_explained(
    folder: Path, text: str, message: str
) -> None:
    (folder / "night.py").write_text(text)
    done = pyrite("run", "night.py")
    assert done.returncode == 1
    assert message in done.stderr
    assert "pyrite/cli" not in done.stderr


@pytest.mark.parametrize("command", ["status", "resume", "cancel"])
def test_a_damaged_store_is_explained(folder: Path, command: str) -> None:
    write(folder, GOOD)
    pyrite("run", "jobs.yaml")
    (folder / "jobs.run" / "journal.sqlite").write_bytes(b"not a database" * 1000)
    done = pyrite(command, "jobs.run")
    assert done.returncode == 1
    assert f"the store '{folder}/jobs.run' is damaged: its file journal.sqlite" in done.stderr


def test_status_shows_a_table_or_the_graph(folder: Path) -> None:
    write(folder, GOOD)
    pyrite("run", "jobs.yaml")
    assert "DONE" in pyrite("status", "jobs.run").stdout
    assert pyrite("status", "jobs.run", "--format", "mermaid").stdout.startswith("flowchart")
    assert pyrite("status", "jobs.run", "--format", "svg").stdout.startswith("<svg")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs: {a: 'nope'}", "must have the form 'package.module:function'; got 'nope'"),
        ("- a\n- b", "must have 'jobs:'"),
        ("jobs: 7", "must be a mapping"),
        ("jobs: {a: [ls]}\nworker: 3", "has the unknown key 'worker:'"),
        ("jobs: {a: [ls]}\nschedule: 3", "must be a list"),
        ("jobs: [", "is not YAML"),
        ("", "must have 'jobs:'"),
        ("jobs: {a: {command: [ls], after: b}}", "has after='b', but there is no such job"),
        ("jobs: {a: [ls]}\npools: 3", "pools must be a dict from pool names to numbers of jobs"),
        ("jobs: {a: [ls]}\nrerun: never", "rerun must be True or False; got 'never'"),
        ("jobs: {a: [ls]}\nstore: [here]", "'store:' in 'jobs.yaml' must be the path of a folder"),
    ],
)
def test_bad_files_are_explained(folder: Path, text: str, message: str) -> None:
    write(folder, text)
    done = pyrite("run", "jobs.yaml")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_files_stores_and_jobs_are_explained(folder: Path) -> None:
    assert "cannot read 'no.yaml'" in pyrite("run", "no.yaml").stderr
    assert "is not the store of a workload" in pyrite("status", "nowhere").stderr
    write(folder, GOOD)
    pyrite("run", "jobs.yaml")
    assert (
        "there is no job 'totl' in this run; did you mean 'total'?"
        in pyrite("log", "jobs.run", "totl").stderr
    )
    assert "has already ended" in pyrite("cancel", "jobs.run").stderr


def test_ctrl_c_cancels_the_run_and_resume_continues_it(folder: Path) -> None:
    marker = folder / "marker"
    write(
        folder,
        GOOD
        + f"  slow: [sh, -c, 'if test -e {marker}; then exit 0; fi; touch {marker}; sleep 1000']\n",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "workload", "run", "jobs.yaml"],
        stdout=subprocess.PIPE,
        text=True,
    )
    commands.wait_for(str(marker))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "pyrite workload resume" in output
    wait_until(lambda: not processes_of(folder), 3)
    resumed = pyrite("resume", "jobs.run")
    assert resumed.returncode == 0
    assert "4 done" in resumed.stdout


def test_cancel_from_another_terminal(folder: Path) -> None:
    marker = folder / "marker"
    write(folder, f"jobs:\n  slow: [sh, -c, 'touch {marker}; sleep 1000']\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "workload", "run", "jobs.yaml"],
        stdout=subprocess.PIPE,
        text=True,
    )
    commands.wait_for(str(marker))
    assert "1 cancelled" in pyrite("cancel", "jobs.run").stdout
    assert process.wait(20) == 1
    process.communicate()
