"""The examples of docs/files.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "files.md"


@pytest.mark.parametrize(("heading", "printed"), [("## Reading", ""), ("## Layouts", "[1, 3]\n")])
def test_the_examples_of_files_run(heading: str, printed: str, tmp_path: Path) -> None:
    section = PAGE.read_text().partition(f"\n{heading}\n")[2]
    blocks = re.findall(r"```python\n(.*?)```", re.split(r"\n## ", section)[0], re.S)
    assert blocks
    (tmp_path / "example.py").write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == (printed, "")
