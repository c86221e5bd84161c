"""What the tools make for the pages of the reference."""

from __future__ import annotations

from pathlib import Path

from scripts.add_examples import add_examples
from scripts.doctests_as_code import in_fences

from pyrite.cli.reference import help_of


def test_a_doctest_becomes_a_block_of_code() -> None:
    docstring = "Adds.\n\n>>> 1 + 1\n2\n\nSo it does."
    assert in_fences(docstring) == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nSo it does."


def test_the_help_of_a_command_has_its_arguments_and_options() -> None:
    text = help_of(["workload", "log"])
    assert "<code>pyrite workload log STORE JOB [OPTIONS]</code>" in text
    assert "<td><code>--follow, -f</code></td>" in text


def test_links_to_examples_lead_to_their_pages(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "count.py").write_text("print(1 < 2)")
    page = tmp_path / "site" / "how-to" / "files.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="../../examples/count.py">count.py</a>')
    add_examples(tmp_path / "examples", tmp_path / "site")
    assert page.read_text() == '<a href="../examples/count.html">count.py</a>'
    assert "&lt;" in (tmp_path / "site" / "examples" / "count.html").read_text()
