"""Runs the code blocks of the documentation, with Sybil. A page is one program: its blocks run one
after the other, in one namespace and in an empty folder.

| block | what happens |
| --- | --- |
| `python` | it runs |
| `text` after it | what it printed; `...` stands for any text |
| `console` | lines that begin with `$ ` run as commands, and the others are what they print |
| any other language | nothing: settings, other people's code, commands for other machines |

In a comment before a block: `<!-- invisible-code-block: python` is code that readers do not see,
`<!-- save: flow.py -->` writes the block to a file, too, and `<!-- compile: next -->` says that it
needs what a test cannot have, so it is only compiled."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator, pad
from sybil.parsers.markdown import CodeBlockParser
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer
from sybil.typing import Lexer

ROOT = Path(__file__).parents[2]
ANY_TEXT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Runs:
    """Runs a block of Python, and keeps what it prints for the block that follows."""

    def __init__(self) -> None:
        self._run = PythonEvaluator()

    def __call__(self, example: Example) -> str | None:
        namespace = example.namespace
        if file := namespace.pop("save_to", None):
            Path(file).write_text(example.parsed)
        if namespace.pop("compile_only", False):
            source = pad(example.parsed, example.line + example.parsed.line_offset)
            compile(source, example.path, "exec", dont_inherit=True)
            namespace["printed"] = None
            return None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self._run(example)
        namespace["printed"] = printed.getvalue()
        return None


def is_what_was_printed(example: Example) -> str | None:
    printed = example.namespace.get("printed")
    return None if printed is None else difference(str(example.parsed), printed)


def runs_in_a_shell(example: Example) -> str | None:
    """Runs the commands of a block, and compares what they print with the lines below them."""
    if example.namespace.pop("compile_only", False):
        return None
    commands = f"\n{example.parsed}".split("\n$ ")[1:]
    for command, _, expected in (text.partition("\n") for text in commands):
        done = subprocess.run(
            command,
            shell=True,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        wrong = difference(expected, done.stdout) if expected.strip() else None
        if done.returncode or wrong:
            return f"$ {command}\nexited with {done.returncode}\n{wrong or done.stdout}"
    return None


def difference(expected: str, printed: str) -> str | None:
    """What differs, as a doctest says it; None if nothing does."""
    checker = doctest.OutputChecker()
    if checker.check_output(expected, printed, ANY_TEXT):
        return None
    return checker.output_difference(doctest.Example("", expected), printed, ANY_TEXT)


class Note:
    """A comment about the next block, such as `<!-- save: flow.py -->`."""

    def __init__(self, directive: str, key: str) -> None:
        self._lexer: Lexer = DirectiveInHTMLCommentLexer(directive, r"[\w.]+")
        self._key = key

    def __call__(self, document: Document) -> Iterable[Region]:
        for region in self._lexer(document):
            region.parsed, region.evaluator = region.lexemes["arguments"], self._keep
            yield region

    def _keep(self, example: Example) -> None:
        example.namespace[self._key] = example.parsed


FOLDER = tempfile.TemporaryDirectory(prefix="pyrite-pages-", ignore_cleanup_errors=True)
PLACE = Path(FOLDER.name) / "here"
"""Where all pages run, one after the other. Spark's Java process lives longer than a page, and its
working directory is the one of the page that starts it."""

RECORDED_IN = ("PYRITE_RUNS", "XDG_STATE_HOME")


def enter(namespace: dict[str, Any]) -> None:
    """Before the first block of a page. Its runs are recorded neither at home nor beside those of
    other pages."""
    namespace["variables"] = {name: os.environ.get(name) for name in RECORDED_IN}
    os.environ.pop("PYRITE_RUNS", None)
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(dir=FOLDER.name)
    namespace["before"] = Path.cwd(), set(threading.enumerate()), spark_session()
    namespace["__name__"] = "__main__"
    namespace["repository"] = ROOT
    PLACE.mkdir(exist_ok=True)
    os.chdir(PLACE)


def leave(namespace: dict[str, Any]) -> None:
    """After the last block of a page: its files are moved away, since a process that it has started
    may still write there; its Spark session is stopped if it has started one itself; and no thread
    of Pyrite is left."""
    for name, value in namespace["variables"].items():
        os.environ.pop(name, None)
        os.environ |= {} if value is None else {name: value}
    place, threads, session = namespace["before"]
    os.chdir(place)
    away = Path(tempfile.mkdtemp(dir=FOLDER.name))
    for path in PLACE.iterdir():
        path.rename(away / path.name)
    if (left_behind := spark_session()) is not session:
        left_behind.stop()
    left = [t.name for t in set(threading.enumerate()) - threads if t.name.startswith("pyrite")]
    assert not left


def spark_session() -> Any:
    """The Spark session of this process; None if there is none, or if PySpark was not imported."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark and pyspark.SparkSession.getActiveSession()


PAGES = Sybil(
    parsers=[
        CodeBlockParser("python", Runs()),
        CodeBlockParser("text", is_what_was_printed),
        CodeBlockParser("console", runs_in_a_shell),
        Note("compile", "compile_only"),
        Note("save", "save_to"),
    ],
    path=str(ROOT),
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    setup=enter,
    teardown=leave,
)
