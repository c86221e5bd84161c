"""What is wrong in a code block of the documentation is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from sybil.example import SybilFailure

from tests.docs.blocks import PAGES


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(page: str) -> None:
    Path("page.md").write_text(page)
    for example in PAGES.parse(Path("page.md")).examples():
        example.evaluate()


def test_blocks_of_a_page_are_one_program() -> None:
    run("```python\nn = 2\n```\n\nText.\n\n```python\nassert n == 2\n```\n")


def test_what_a_block_prints_is_compared() -> None:
    page = "```python\nprint('one two three')\n```\n\n```text\none ... three\n```\n"
    run(page)
    with pytest.raises(SybilFailure, match="four"):
        run(page.replace("... three", "... four"))


def test_commands_run_and_what_they_print_is_compared() -> None:
    run("```console\n$ echo one\none\n$ true\n```\n")
    with pytest.raises(SybilFailure, match="echo one"):
        run("```console\n$ echo one\ntwo\n```\n")
    with pytest.raises(SybilFailure, match="exited with 3"):
        run("```console\n$ exit 3\n```\n")


def test_a_block_can_be_saved_to_a_file() -> None:
    run("<!-- save: flow.py -->\n\n```python\nn = 1\n```\n")
    assert Path("flow.py").read_text() == "n = 1\n"


def test_a_block_that_cannot_run_is_compiled() -> None:
    run("<!-- compile: next -->\n\n```python\nraise SystemExit\n```\n\n```text\nnothing\n```\n")
    with pytest.raises(SyntaxError):
        run("<!-- compile: next -->\n\n```python\nraise raise\n```\n")
