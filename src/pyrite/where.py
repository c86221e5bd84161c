"""The line of the user's file that called Pyrite. Errors name it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = str(Path(__file__).parent) + os.sep


def users_line() -> str:
    """The file and the line of the nearest caller outside of Pyrite: `flow.py line 12`."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    path = frame.f_code.co_filename
    line = f"{os.path.basename(path)} line {frame.f_lineno}"
    _paths[line] = path
    return line


def path_of(line: str) -> str | None:
    """The whole path of the file of a line that `users_line` has named in this process. If files of
    two folders have the same name, it is the last one."""
    path = _paths.get(line)
    return path if path is None else os.path.abspath(path)


_paths: dict[str, str] = {}
"""By lines of the program, of which there are not many."""
