"""The first programs of the documentation run, and links to files of the project are right."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def run_program(text: str, folder: Path) -> str:
    (folder / "first.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "first.py"], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_program_gives_the_same_here_and_on_spark(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    here, on_spark = run_program(README[0], tmp_path).splitlines()
    text = " ".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    counts = Counter(text.lower().split())
    assert [n for _, n in ast.literal_eval(here)] == [n for _, n in counts.most_common(5)]
    assert {*ast.literal_eval(here)} <= {*counts.items()}
    assert [n for _, n in ast.literal_eval(on_spark)] == [n for _, n in ast.literal_eval(here)]


def test_the_second_program_writes_totals_and_what_is_bad(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    orders = [json.dumps({"customer": n % 3, "total": n - 1}) for n in range(300)]
    text = "\n".join([*orders, "{broken", '{"customer": 1}'])
    (tmp_path / "orders" / "a.jsonl").write_text(text)
    (tmp_path / "customers.csv").write_text("id,country\n0,NO\n1,SE\n2,NO\n")
    assert "aggregate" in run_program(README[1], tmp_path)
    found = pq.read_table(tmp_path / "totals").to_pylist()
    assert sorted(found, key=lambda row: row["country"]) == [
        {"country": "NO", "orders": 199, "total": sum(n - 1 for n in range(2, 300) if n % 3 != 1)},
        {"country": "SE", "orders": 99, "total": sum(n - 1 for n in range(4, 300, 3))},
    ]
    written = (tmp_path / "bad" / "part-00000.jsonl").read_text()
    bad = [json.loads(line) for line in written.splitlines()]
    assert [one["vertex"] for one in bad] == ["read_files", "filter"]
    assert [one["item"].get("line", "none") for one in bad] == [301, "none"]


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
