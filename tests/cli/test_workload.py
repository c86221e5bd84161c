"""The commands for workloads, and their messages for wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyrite.workload import JobState, Run
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


def test_the_report_is_one_file(folder: Path) -> None:
    write(folder, GOOD)
    pyrite("run", "jobs.yaml")
    assert pyrite("report", "jobs.run").stdout == f"{folder}/jobs.run/report.html\n"
    done = pyrite("report", "jobs.run", "-o", "here.html", "--json")
    size = (folder / "here.html").stat().st_size
    assert json.loads(done.stdout) == {"file": "here.html", "bytes": size}
    assert (folder / "here.html").read_text().startswith("<!DOCTYPE html>")
    failed = pyrite("report", "jobs.run", "-o", "no/folder.html")
    assert "cannot write 'no/folder.html': No such file or directory; give another" in failed.stderr


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


def test_log_f_follows_a_job_that_has_not_started_through_its_attempts(folder: Path) -> None:
    write(
        folder,
        """
workers: 1
jobs:
  first: [sh, -c, 'touch started; until test -e go; do sleep 0.01; done']
  noisy:
    command: [sh, -c, 'echo hello; until test -e $PWD/on; do sleep 0.01; done; test -e second || {
      touch second; echo again; exit 3; }; echo bye']
    after: first
    retries: 1
""",
    )
    command = [sys.executable, "-m", "pyrite", "workload"]
    running = subprocess.Popen([*command, "run", "jobs.yaml"], stdout=subprocess.DEVNULL)
    commands.wait_for("started")
    pipe = subprocess.PIPE
    following = subprocess.Popen(
        [*command, "log", "-f", "jobs.run", "noisy"], stdout=pipe, stderr=pipe, text=True
    )
    assert following.stdout is not None
    (folder / "go").touch()
    assert following.stdout.readline() == "hello\n"
    (folder / "on").touch()
    output, errors = following.communicate(timeout=60)
    assert output == "again\nhello\nbye\n"
    assert "attempt 2:" in errors
    assert (following.returncode, running.wait(60)) == (0, 0)


def test_ctrl_c_ends_log_f_and_not_the_run(folder: Path) -> None:
    write(folder, "jobs:\n  slow: [sh, -c, 'echo up; until test -e go; do sleep 0.01; done']\n")
    command = [sys.executable, "-m", "pyrite", "workload"]
    running = subprocess.Popen([*command, "run", "jobs.yaml"], stdout=subprocess.DEVNULL)
    wait_until(lambda: (folder / "jobs.run" / "logs").exists(), 60)
    wait_until(lambda: any(p.stat().st_size for p in (folder / "jobs.run/logs").iterdir()), 60)
    following = subprocess.Popen(
        [*command, "log", "-f", "jobs.run", "slow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "up\n"
    following.send_signal(signal.SIGINT)
    _, errors = following.communicate(timeout=60)
    assert following.returncode == 130
    assert "Traceback" not in errors
    (folder / "go").touch()
    assert running.wait(60) == 0


def test_with_json_standard_output_is_one_document(folder: Path) -> None:
    (folder / "loud.py").write_text(
        "import os\nprint('loaded')\nos.system('echo loading')\n"
        "from pyrite.workload import Workload\nworkload = Workload()\n"
        "@workload.job\ndef a():\n    print('from a')\n    return 2\n"
        "@workload.job\ndef b(a):\n    raise ValueError('no <b>')\n"
    )
    done = pyrite("run", "loud.py", "--json", "--workers", "1")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert "loading" in done.stderr
    assert document["phase"] == "ended"
    assert document["store"] == str(folder / "loud.run")
    assert document["counts"] == {"DONE": 1, "FAILED": 1}
    assert [job["job"] for job in document["jobs"]] == ["a", "b"]
    assert document["jobs"][1]["error"] == "ValueError: no <b>"
    assert json.loads(pyrite("status", "loud.run", "--json").stdout) == document
    log = json.loads(pyrite("log", "loud.run", "a", "--json", "-f").stdout)
    assert (log["state"], log["log"], log["traceback"]) == ("DONE", "from a\n", None)
    again = json.loads(pyrite("resume", "loud.run", "--json").stdout)
    assert again.keys() == document.keys()


def test_with_json_an_error_is_a_document_too(folder: Path) -> None:
    for command in (["cancel"], ["log", "job"]):
        done = pyrite(*command[:1], "nowhere", *command[1:], "--json")
        assert "is not the store of a workload" in json.loads(done.stdout)["error"]
        assert "is not the store of a workload" in done.stderr
        assert done.returncode == 1


def test_plan_says_what_would_run_and_why_and_a_part_can_be_run(folder: Path) -> None:
    write(folder, GOOD)
    assert "3 to run" in pyrite("plan", "jobs.yaml").stdout
    assert not (folder / "jobs.run").exists()
    pyrite("run", "jobs.yaml")
    steps = folder / "steps.py"
    steps.write_text(steps.read_text().replace("[1, 2, 3]", "[1, 2, 4]"))
    document = json.loads(pyrite("plan", "jobs.yaml", "--json").stdout)
    assert document["counts"] == {"run": 1, "may run": 1, "skip": 1}
    assert {row["job"]: row["action"] for row in document["jobs"]} == {
        "load": "run",
        "total": "may run",
        "hello": "skip",
    }
    why = pyrite("plan", "jobs.yaml", "--why", "load").stdout
    assert why == "job 'load' would run: the code of load (steps.py line 1) changed\n"
    done = pyrite("run", "jobs.yaml", "--to", "load")
    assert "1 done" in done.stdout
    only = pyrite("run", "jobs.yaml", "--only", "total", "--only", "hello")
    assert "SKIPPED (not selected)" in only.stdout
    assert Run.attach("jobs.run").results["total"] == 7


def test_status_says_what_is_known_when_the_master_is_dead(folder: Path) -> None:
    marker = folder / "marker"
    write(folder, f"jobs:\n  a: steps:load\n  slow: [sh, -c, 'touch {marker}; sleep 1000']\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrite", "workload", "run", "jobs.yaml"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    commands.wait_for(str(marker))
    wait_until(lambda: JobState.RUNNING in Run.attach("jobs.run").counts())
    master = Run.attach("jobs.run").pid
    os.kill(master, signal.SIGKILL)
    assert process.wait(60) == 1
    shown = pyrite("status", "jobs.run").stdout
    assert f"its master (process {master}) was killed, so nothing runs any more" in shown
    assert "its master was killed while it ran; resume runs it again" in shown
    assert "killed after" in shown
    assert f"pyrite workload resume {folder}/jobs.run" in shown
    document = json.loads(pyrite("status", "jobs.run", "--json").stdout)
    assert (document["phase"], document["counts"].get("RUNNING")) == ("killed", None)
    assert "was killed" in document["problem"]
