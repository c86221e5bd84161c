"""The programs of the page about columns run, and print what the page is about."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "columns.md"


def test_the_programs_print_what_the_page_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
            exec(block, {})
    assert [eval(line) for line in printed.getvalue().splitlines()] == [
        [{"shop": "a", "total": 6.0, "n": 2}, {"shop": "b", "total": 5.0, "n": 1}],
        [1, 5],
        [5, 6],
    ]
