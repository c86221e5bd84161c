"""A temporary folder for the code and files of a job. A process that is killed leaves its folder;
the next one that makes such a folder removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "pyrite-job-"
LOCK: Final = "lock"
NEW_SECONDS: Final = 60.0
"""A folder that is younger may not be locked yet."""


@contextmanager
def job_folder() -> Iterator[Path]:
    _remove_dead()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        # The kernel releases the lock when the process dies, however it dies.
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield folder
        finally:
            os.close(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead() -> None:
    long_ago = time.time() - NEW_SECONDS
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_uid == os.getuid() and found.st_mtime < long_ago:
                        _remove_unless_locked(Path(entry.path))


def _remove_unless_locked(folder: Path) -> None:
    """Raises OSError if it is locked, or has no lock: then it is not one of these folders."""
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)
