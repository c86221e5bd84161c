"""Adds the programs of examples/ to the built site, with colours, and turns the links of its pages
to them: `python -m scripts.add_examples site`. In the repository, these links lead to the files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

LINK = re.compile(r'(href="?)((?:\.\./)+)examples/([\w/-]+)\.py')


def add_examples(examples: Path, site: Path) -> None:
    """Makes a page of each program, and rewrites the links to it. A page in docs/ links to
    ../examples/x.py; the site has no folder docs, so there the way is one step shorter."""
    for program in sorted(examples.rglob("*.py")):
        name = program.relative_to(examples).as_posix()
        look = HtmlFormatter(full=True, title=f"examples/{name}")
        page = site / "examples" / Path(name).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(highlight(program.read_text(), PythonLexer(), look))
    for page in site.rglob("*.html"):
        text = page.read_text()
        shorter = LINK.sub(lambda found: _in_site(*found.groups()), text)
        if shorter != text:
            page.write_text(shorter)


def _in_site(start: str, way: str, name: str) -> str:
    return f"{start}{way.removeprefix('../')}examples/{name}.html"


if __name__ == "__main__":
    add_examples(Path("examples"), Path(sys.argv[1]))
