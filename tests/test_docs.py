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


def test_the_options_of_jobs_run(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "workloads.md").read_text().partition("### More options of jobs")[2]
    blocks = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.S)
    text = "\n".join(blocks) + "\nassert not workload.run(store='run').wait().failed()\n"
    (tmp_path / "options.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "options.py"],
        cwd=tmp_path,
        env={**os.environ, "DB_PASSWORD": "unknown"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_are_right(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
