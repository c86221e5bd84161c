"""Who is alive: each session in a folder holds a lock on a file of its own. The kernel releases the
lock when the process dies, however it dies, so nobody is thought dead who is only slow."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyrite.forks import repair_after_fork

NEW_SECONDS: Final = 60.0


class Lock:
    """A lock that this process holds until `release`, or until it dies. A child process does not
    hold it: it closes the file when it is forked, or when it is replaced by another program."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = _path(folder, name)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(self._file)
            raise
        repair_after_fork(self)

    def after_fork(self) -> None:
        """In a child process, which may outlive this one."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def release(self) -> None:
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def is_held(folder: Path, name: str) -> bool:
    """Whether the holder of a lock is alive. Names are never used twice, so who is dead stays
    dead."""
    try:
        file = os.open(_path(folder, name), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    _path(folder, name).unlink(missing_ok=True)
    return False


def remove_dead(folder: Path) -> None:
    """Removes the files of holders that were killed. A file that is new may belong to one that is
    about to lock it."""
    long_ago = time.time() - NEW_SECONDS
    with suppress(FileNotFoundError), os.scandir(_path(folder, "")) as files:
        for file in files:
            with suppress(FileNotFoundError):
                if file.stat().st_mtime < long_ago:
                    is_held(folder, file.name)


def _path(folder: Path, name: str) -> Path:
    return folder / "alive" / name
