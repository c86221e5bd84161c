"""The working directory and the output streams that a job finds in a worker. They are restored
after each job, because a job may change them."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


class Surroundings:
    """Remembers the working directory and the log, which is standard output, at the time when this
    object is made."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._log = os.dup(1)
        self._set_streams()

    def log_size(self) -> int:
        return os.fstat(self._log).st_size

    def restore(self) -> None:
        if (
            sys.stdout is self._out
            and sys.stderr is self._err
            and not self._out.closed
            and not self._err.closed
        ):
            try:
                self._out.flush()
                self._err.flush()
            except OSError:
                pass  # the disk is full; writing the record of the job will fail as well
        else:
            self._set_streams()
        if self._folder is not None and _folder() != self._folder:
            try:
                os.chdir(self._folder)
            except OSError:  # the directory was removed
                self._folder = None
        self._restore_files()

    def _restore_files(self) -> None:
        log = os.fstat(self._log)
        for file in (1, 2):
            try:
                found = os.fstat(file)
                is_log = (found.st_dev, found.st_ino) == (log.st_dev, log.st_ino)
            except OSError:
                is_log = False
            if not is_log:
                os.dup2(self._log, file)

    def _set_streams(self) -> None:
        """Sets streams that do not close their files and that write each line at once, because a
        job may be killed at any time."""
        self._out = sys.stdout = stream(1)
        self._err = sys.stderr = stream(2)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def stream(file: int, *, closes: bool = False) -> TextIO:
    raw = io.FileIO(file, "w", closefd=closes)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
