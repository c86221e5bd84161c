"""The first programs of the documentation run, and links to files of the project are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_quick_start_of_durable_jobs_runs(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.txt").write_text("the whale and the sea\n" * 100)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "durable.md").read_text(), re.S)
    (tmp_path / "quick.py").write_text("\n".join(blocks[:2]))
    done = subprocess.run(
        [sys.executable, "quick.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    id, *rest = done.stdout.split()
    assert rest == ["100", id, "job", "'words'", "completed"]


@pytest.mark.parametrize(
    ("heading", "more", "printed"),
    [
        (
            "### More options of jobs",
            "assert not workload.run(store='run').wait().failed()",
            "",
        ),
        ("### Inputs", "", ""),
        (
            "### One job per element of a result",
            "",
            r"\[3, 6, 12\]\n21\n\['score\[0\]'\]\n",
        ),
        ("## The store", "", r"Pruned\(results=1, bytes=\d+.*\n"),
        ("### Failures as an exception", "", "6\n"),
        (
            "### Files that jobs read and write",
            "",
            r"\['DONE', 'DONE'\]\n\['SKIPPED', 'SKIPPED'\]\n",
        ),
        ("### What would run, and why", "", "load   run      the argument month changed\n.*"),
        ("### Running a part", "", "a SKIPPED False\nb DONE True\n"),
    ],
)
def test_the_examples_of_workloads_run(
    heading: str, more: str, printed: str, tmp_path: Path
) -> None:
    section = (ROOT / "docs" / "workloads.md").read_text().partition(f"\n{heading}\n")[2]
    blocks = re.findall(r"```python\n(.*?)```", re.split(r"\n##+ ", section)[0], re.S)
    assert blocks
    (tmp_path / "example.py").write_text("\n".join([*blocks, more]))
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "DB_PASSWORD": "unknown"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert re.fullmatch(printed, done.stdout, re.S)


def test_the_examples_of_databases_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sql.md").read_text(), re.S)
    (tmp_path / "example.py").write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[('DE', 60), ('FR', 29)]\n", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_are_right(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
