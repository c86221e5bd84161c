"""What the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrite.cli.completing import dags, open_jobs

FILE = """
from pyrite import DAG, Pipeline
raise SystemExit("completion runs no code")
dag = DAG()
pipe: Pipeline = Pipeline()
number = 3
def make(): ...
def _hidden(): ...
"""


PROGRAM = "import sys; sys.argv[0] = 'pyrite'; from pyrite.cli import main; main()"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "words.py").write_text(FILE)
    (tmp_path / "half.py").write_text("x = (")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "more.py").write_text("dag = DAG()")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        ("", ["half.py:", "jobs/", "words.py:"]),
        ("wo", ["words.py:dag", "words.py:pipe", "words.py:make"]),
        ("ha", ["half.py:"]),
        ("jo", ["jobs/more.py:dag"]),
        ("words.py:", ["words.py:dag", "words.py:pipe", "words.py:make"]),
        ("words.py:m", ["words.py:make"]),
        ("words:p", ["words:pipe"]),
        ("jobs/", ["jobs/more.py:dag"]),
        ("jobs.more:", ["jobs.more:dag"]),
        ("half.py:", []),
        ("nothing.py:", []),
        ("nothing/", []),
    ],
)
def test_a_dag_is_completed_without_running_its_file(begun: str, found: list[str]) -> None:
    assert dags(begun) == found


def test_without_runs_no_job_is_completed() -> None:
    assert open_jobs("") == []


def completed(shell: str, words: str, number: int) -> list[str]:
    """What the program prints when a shell asks it to complete a word."""
    return asked(f"complete_{shell}", COMP_WORDS=words, COMP_CWORD=str(number))


def asked(what: str, **variables: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "_PYRITE_COMPLETE": what, **variables},
    )
    return done.stdout.split()


def test_a_shell_gets_commands_and_dags() -> None:
    assert "run" in completed("bash", "pyrite ru", 1)
    assert completed("bash", "pyrite run jobs/", 2) == ["jobs/more.py:dag"]


def test_bash_ends_words_at_colons() -> None:
    assert completed("bash", "pyrite run words.py : m", 4) == ["make"]
    assert completed("bash", "pyrite run words.py :", 3) == ["dag", "pipe", "make"]


def test_the_script_for_a_shell_is_shown() -> None:
    assert completed("bash", "pyrite --show-comp", 1) == ["--show-completion"]
    assert "complete_bash" in " ".join(asked("source_bash"))
