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
    return f"{os.path.basename(frame.f_code.co_filename)} line {frame.f_lineno}"
