"""Deletes old runs from the journal."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Final

from pyrite.watching.journal import places
from pyrite.watching.journal.reading import Journal

KEPT_RUNS: Final = 500
KEPT_SECONDS: Final = 30 * 24 * 3600.0


def prune(folder: Path, *, runs: int = KEPT_RUNS, seconds: float = KEPT_SECONDS) -> None:
    """Keeps the newest runs, and those that have not ended. Several processes may do this at the
    same time."""
    oldest = time.time() - seconds
    rows = Journal(folder).rows()
    for n, row in enumerate(rows):
        if row.has_ended and (n >= runs or row.submitted < oldest):
            shutil.rmtree(folder / row.id, ignore_errors=True)
    readable = {row.id for row in rows}
    for entry in os.scandir(folder):
        if places.is_id(entry.name) and entry.name not in readable and _age(entry) > seconds:
            shutil.rmtree(entry.path, ignore_errors=True)


def _age(entry: os.DirEntry[str]) -> float:
    try:
        return time.time() - entry.stat().st_mtime
    except OSError:
        return 0.0
