"""The programs of the page about pipelines run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"


def test_the_programs_print_what_the_page_is_about() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
            exec(block, {})
    first, second, *others = printed.getvalue().splitlines()
    assert sorted(eval(first)) == [("be", 2), ("to", 2)]
    assert eval(second) == {"orders": 2, "total": 4.5}
    assert "   combines before the exchange" in others
    assert "['10.00 euros', '25.00 euros']" in others
    bad_records = others[others.index("good: [2, 4]") + 1 :]
    assert sorted(bad_records[:2]) == [
        "divide 0 ZeroDivisionError: integer division or modulo by zero",
        "parse 'x' ValueError: invalid literal for int() with base 10: 'x'",
    ]
    assert bad_records[2:4] == ["bad: 1", "then: [2, 4, 33]"]


def test_the_program_that_looks_prints_what_the_page_shows() -> None:
    section = PAGE.read_text().partition("\n## Before it runs, and after it failed\n")[2]
    program, table = (
        re.findall(rf"```{kind}\n(.*?)```", section, re.S)[0] for kind in ("python", "text")
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert table in printed.getvalue()
    assert "Vertex 'reduce' (added in <string> line 7) depends on the order" in printed.getvalue()
    assert printed.getvalue().endswith("\nmap-3 ('ann', 0)\nagain\n")
