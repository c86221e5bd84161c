"""Where the journal of runs is, and where its parts are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

VARIABLE: Final = "PYRITE_RUNS"

RUN: Final = "run.jsonl"
HISTORY: Final = "history.json"
LOG: Final = "log.jsonl"
OLD_LOG: Final = "log.1.jsonl"
CANCEL: Final = "cancel"
KNOWN: Final = "known"

_ID: Final = re.compile(r"[0-9a-f]{4,64}")


def runs_folder() -> Path:
    """The folder that the environment names, or else the default one."""
    return folder_in_environment() or default_folder()


def folder_in_environment() -> Path | None:
    """The folder that PYRITE_RUNS names; None if it is not set. Where it is set, all instances
    record their runs."""
    named = os.environ.get(VARIABLE)
    return Path(os.path.expanduser(named)).absolute() if named else None


def default_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state and os.path.isabs(state) else _home() / ".local" / "state"
    return base / "pyrite" / "runs"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name, as in a container: runs are not recorded
        return Path("/")


def is_id(text: str) -> bool:
    """Whether it may be the id of a run. No other text becomes a part of a path.

    >>> is_id("1a2b3c4d"), is_id("../known"), is_id("known"), is_id("")
    (True, False, False, False)
    """
    return _ID.fullmatch(text) is not None
