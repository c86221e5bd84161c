"""mypy and pyright infer the item type of each stage from plain lambdas, and reject what does not
fit the items."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from pyrite import BatchGrouped, BatchStage, Grouped, Stage, agg, processors
from tests.pipeline.rejected import REJECTED, Rejected

ROOT = Path(__file__).parents[2]
REVEALED = Path(__file__).with_name("revealed.py")
BEFORE = """
ints: Sink[int] = p.write_list("ints")
count_of_ints: Aggregate[int, int] = agg.count()
"""

Found = dict[tuple[str, int], str]
"""What a type checker says, by file and line."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both tables as programs, so that each type checker is started once."""
    folder = tmp_path_factory.mktemp("types")
    revealed = REVEALED.read_text()
    rejected = "\n".join([revealed, BEFORE, *(row.program for row in REJECTED), ""])
    for mode in ("basic", "strict"):
        (folder / f"revealed_{mode}.py").write_text(f"{revealed}# pyright: {mode}\n")
        (folder / f"rejected_{mode}.py").write_text(f"{rejected}# pyright: {mode}\n")
    return folder


def line_of(row: Rejected) -> int:
    before = REVEALED.read_text() + "\n" + BEFORE
    return before.count("\n") + 2 + REJECTED.index(row)


@pytest.fixture(scope="module")
def mypy(folder: Path) -> Found:
    """With the cache of `make lint`, which makes this fast."""
    files = ["revealed_strict.py", "rejected_strict.py"]
    config = ["--strict", "--config-file", f"{ROOT}/pyproject.toml", "--cache-dir"]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *config, f"{ROOT}/.mypy_cache", *files],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return by_line(re.findall(r"^(\w+\.py):(\d+): error: (.*)$", ran.stdout, re.M))


@pytest.fixture(scope="module")
def pyright(folder: Path) -> Found:
    settings = {"extraPaths": [str(ROOT / "src")], "include": ["."]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=folder,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},  # asks nobody for news
        capture_output=True,
        text=True,
    )
    assert ran.stdout.startswith("{"), f"pyright did not run:\n{ran.stdout}{ran.stderr}"
    return by_line(
        (Path(each["file"]).name, str(each["range"]["start"]["line"] + 1), each["message"])
        for each in json.loads(ran.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    )


def by_line(errors: Iterable[tuple[str, str, str]]) -> Found:
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for file, line, message in errors:
        found[file, int(line)].append(message)
    return {place: "\n".join(messages) for place, messages in found.items()}


def of_file(found: Found, file: str) -> dict[int, str]:
    return {line: text for (name, line), text in found.items() if name == file}


def test_mypy_infers_the_types_of_the_table(mypy: Found) -> None:
    assert of_file(mypy, "revealed_strict.py") == {}


@pytest.mark.parametrize("mode", ["basic", "strict"])
def test_pyright_infers_the_types_of_the_table(pyright: Found, mode: str) -> None:
    assert of_file(pyright, f"revealed_{mode}.py") == {}


@pytest.mark.parametrize("row", REJECTED, ids=lambda row: row.program)
def test_both_reject_what_is_wrong_and_say_why(mypy: Found, pyright: Found, row: Rejected) -> None:
    line = line_of(row)
    assert row.mypy in mypy.get(("rejected_strict.py", line), "nothing")
    for mode in ("basic", "strict"):
        assert row.pyright in pyright.get((f"rejected_{mode}.py", line), "nothing")


def test_only_what_is_wrong_is_rejected(mypy: Found, pyright: Found) -> None:
    wrong = {line_of(row) for row in REJECTED}
    assert set(of_file(mypy, "rejected_strict.py")) == wrong
    assert set(of_file(pyright, "rejected_basic.py")) == wrong


def public(thing: object) -> list[str]:
    return [n for n, _ in inspect.getmembers(thing, inspect.isroutine) if not n.startswith("_")]


@pytest.mark.parametrize(
    "call",
    [
        *(
            f".{name}("
            for cls in (Stage, Grouped, BatchStage, BatchGrouped)
            for name in public(cls)
        ),
        *(f"agg.{name}(" for name in agg.__all__ if name != "Aggregate"),
        *(f"p.{name}(" for name in processors.__all__ if name.startswith(("read_", "write_"))),
    ],
)
def test_every_method_aggregate_source_and_sink_is_in_the_table(call: str) -> None:
    assert call in REVEALED.read_text()
