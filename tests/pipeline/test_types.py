"""mypy infers the item type of each stage from plain lambdas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("mypy"))


@pytest.fixture(scope="module")
def notes(cache: str) -> dict[int, str]:
    """By line of revealed.py, the type that mypy reveals."""
    out, err, code = api.run(["--strict", "--cache-dir", cache, str(HERE / "revealed.py")])
    assert code == 0, out + err
    found = re.findall(r':(\d+): note: Revealed type is "(.*)"', out)
    return {int(line): re.sub(r"(\w+\.)+", "", text) for line, text in found}


def test_the_revealed_types_are_those_of_the_comments(notes: dict[int, str]) -> None:
    lines = (HERE / "revealed.py").read_text().splitlines()
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(lines, 1)
        if line.startswith("reveal_type(") and "  # " in line
    }
    assert expected == notes


def test_a_typo_in_a_lambda_is_an_error(cache: str, tmp_path: Path) -> None:
    file = tmp_path / "typo.py"
    file.write_text(
        "from pyrite import Pipeline\nPipeline().read_from(['a']).map(lambda word: word.uper())\n"
    )
    out, _, code = api.run(["--strict", "--cache-dir", cache, str(file)])
    assert code == 1
    assert '"str" has no attribute "uper"' in out
