"""What the shell completes: the DAGs of Python files, which are parsed and not run, and the jobs
that `cancel` may name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

SUFFIX: Final = ".py"
ASKED: Final = "_PYRITE_COMPLETE"


def dags(incomplete: str) -> list[str]:
    """For MODULE:DAG: the files and folders here; after the colon, the names in the file. If there
    is one file or folder, what is in it: a shell puts a space after the only candidate."""
    where, colon, begun = incomplete.rpartition(":")
    if not colon:
        found = _files(incomplete)
        return dags(found[0]) or found if len(found) == 1 and found[0] != incomplete else found
    path = Path(where if where.endswith(SUFFIX) else where.replace(".", "/") + SUFFIX)
    return [f"{where}:{name}" for name in names_in(path) if name.startswith(begun)]


@contextmanager
def whole_words(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Bash ends a word at a colon, so `words.py:da` comes as three words, and what is completed
    replaces the last of them only. Does nothing unless bash asks."""
    typed = join_at_colon(environ) if environ.get(ASKED) == "complete_bash" else ""
    if not typed:
        yield
        return
    with redirect_stdout(StringIO()) as found:
        try:
            yield
        finally:
            lines = found.getvalue().splitlines()
            print("\n".join(line.removeprefix(typed) for line in lines), file=sys.__stdout__)


def join_at_colon(environ: MutableMapping[str, str]) -> str:
    """Makes one word of the three, and returns what stands before the last of them.

    >>> environ = {"COMP_WORDS": "pyrite run words.py : da", "COMP_CWORD": "4"}
    >>> join_at_colon(environ), environ
    ('words.py:', {'COMP_WORDS': 'pyrite run words.py:da', 'COMP_CWORD': '2'})
    """
    words, last = environ.get("COMP_WORDS", "").split(), int(environ.get("COMP_CWORD", "0"))
    if not 2 <= last < len(words) or ":" not in words[last - 1 : last + 1]:
        return ""
    first = last - 1 if words[last] == ":" else last - 2
    environ["COMP_WORDS"] = " ".join([*words[:first], "".join(words[first : last + 1])])
    environ["COMP_CWORD"] = str(first)
    return f"{words[first]}:"


def names_in(path: Path) -> list[str]:
    """What may be a DAG in a file: a variable that a call made, or a function."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
                names.append(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call()):
                names.append(name)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def open_jobs(incomplete: str) -> list[tuple[str, str]]:
    """The ids of the recorded jobs that have not ended, each with its name."""
    from pyrite.watching.journal import Journal, runs_folder

    return [
        (row.id, row.name)
        for row in Journal(runs_folder()).rows()
        if not row.has_ended and row.id.startswith(incomplete)
    ]


def _files(incomplete: str) -> list[str]:
    folder, slash, begun = incomplete.rpartition("/")
    try:
        entries = sorted((Path(folder or "/") if slash else Path()).iterdir())
    except OSError:
        return []
    found = []
    for entry in entries:
        if not entry.name.startswith(begun) or entry.name.startswith((".", "__")):
            continue
        if entry.suffix == SUFFIX:
            found.append(f"{folder}{slash}{entry.name}:")
        elif entry.is_dir():
            found.append(f"{folder}{slash}{entry.name}/")
    return found
