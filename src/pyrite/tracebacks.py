"""The user's part of a traceback, without the frames of Pyrite and of the libraries through which
Pyrite calls the user's code."""

from __future__ import annotations

import re
import traceback
from functools import lru_cache
from pathlib import Path

_HERE = str(Path(__file__).parent)
_STANDARD = re.compile(r"/lib/python3\.\d+t?/")  # also of the Python of a Spark worker
_INSTALLED = re.compile(r"/(?:site-packages|dist-packages|[^/]+\.zip)/([^/]+)/")
_CALLERS = ("cloudpickle", "grpc", "py4j", "pyspark", "rich", "typer")
"""The packages that Pyrite calls. Their frames are the user's business only below the user's
frames."""

_FRAME = re.compile(r'(?P<margin>[ |]*)File "(?P<file>.+)", line \d+, in ')
_SYNTAX_ERROR = re.compile(r'[ |]*File ".+", line \d+$')
_HEADER = re.compile(r"[ |+]*(Exception Group )?Traceback \(most recent call last\):$")


def users_traceback(error: BaseException) -> str:
    """The traceback of an exception and of its causes, from the user's first frame on, without the
    frames of Pyrite. Empty if there is no frame of the user.

    An exception from another process, such as a Spark worker, has its traceback as a note.
    """
    notes = [note for note in getattr(error, "__notes__", ()) if _HEADER.match(_first_line(note))]
    try:
        is_remote = error.__traceback__ is None and notes
        text = notes[-1] if is_remote else "".join(traceback.format_exception(error))
    except Exception:  # the exception raises another one when it is printed
        return ""
    return users_part(text)


def users_part(text: str) -> str:
    """The user's part of a formatted traceback."""
    kept: list[str] = []
    has_users = False
    is_leading = True
    for block in _blocks(text.splitlines()):
        frame = _FRAME.match(block[0])
        if frame is None:
            kept.extend(block)
            has_users = has_users or _SYNTAX_ERROR.match(block[0]) is not None
            if _HEADER.match(block[0]):
                is_leading = True
        elif not is_pyrites(frame["file"]) and not (is_leading and _is_caller(frame["file"])):
            is_leading = False
            has_users = True
            kept.extend(block)
    if not has_users:
        return ""
    lines = [
        line
        for line, following in zip(kept, [*kept[1:], ""])
        if not _HEADER.match(line) or _FRAME.match(following)
    ]
    return "\n".join([*lines, ""])


def _blocks(lines: list[str]) -> list[list[str]]:
    """The lines in groups: the line of a frame is in one group with the lines of code and of marks
    below it."""
    blocks: list[list[str]] = []
    margin: str | None = None
    for line in lines:
        frame = _FRAME.match(line)
        if frame is None and margin is not None and line.startswith(f"{margin}  "):
            blocks[-1].append(line)
        else:
            margin = frame["margin"] if frame is not None else None
            blocks.append([line])
    return blocks


@lru_cache(maxsize=1024)
def is_pyrites(file: str) -> bool:
    """Whether a file of a frame belongs to Pyrite, or is code that Pyrite has generated."""
    return file.startswith((_HERE, "<pyrite")) or _package_of(file) == "pyrite"


def _is_caller(file: str) -> bool:
    package = _package_of(file)
    is_standard = file.startswith("<frozen") or _STANDARD.search(file) is not None
    return package in _CALLERS if package is not None else is_standard


def _package_of(file: str) -> str | None:
    """The installed package, or the package in a zip file, that a file belongs to."""
    found = _INSTALLED.search(file)
    return found[1] if found is not None else None


def _first_line(text: object) -> str:
    return text.partition("\n")[0] if isinstance(text, str) else ""
