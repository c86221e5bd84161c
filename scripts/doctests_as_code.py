"""Shows the doctests of a docstring as code in the reference, which mkdocstrings does only under a
heading "Examples", and leaves out what only Pyrite calls. An extension of Griffe; mkdocs.yml names
it."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*\n?(?:^(?!$).*\n?)*", re.M)


class DoctestsAsCode(griffe.Extension):
    """Puts each doctest into a fenced block. What has no docstring is not shown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "Only Pyrite calls this" in obj.docstring.value:
            obj.docstring = None
        elif obj.docstring is not None:
            obj.docstring.value = in_fences(obj.docstring.value)


def in_fences(docstring: str) -> str:
    """The docstring with a fence around each doctest: the lines from `>>>` to the next empty
    line."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring)
