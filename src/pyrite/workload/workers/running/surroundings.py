"""What a job finds in a worker: the output streams, and all that `aspects` lists. They are restored
after each job, because a job may change them."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # in C: `signal` converts all to enums
import io
import os
import sys
from typing import TextIO

from pyrite.workload.workers.running.aspects import ASPECTS, LIMITS

_READS = [aspect.read for aspect in ASPECTS]


class Surroundings:
    """Remembers how things are at the time when this object is made. Standard output is the log."""

    def __init__(self) -> None:
        self._log = os.dup(1)
        self._files = [(kept, _identity(kept)) for kept in (os.dup(0), self._log, self._log)]
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._set_streams()
        self._before = [read() for read in _READS]
        self._limits = LIMITS.read()
        # A job that changes limits imports this module. It is not in the table until then, so the
        # limits need not be read after each job; that would take half of the time of `restore`.
        sys.modules.pop("resource", None)

    def log_size(self) -> int:
        return os.fstat(self._log).st_size

    def restore(self) -> bool:
        """Returns False if something cannot be restored."""
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        os.umask(self._umask)
        self._restore_streams()
        is_restored = True
        if [read() for read in _READS] != self._before:
            for aspect, before in zip(ASPECTS, self._before):
                if aspect.read() != before:
                    is_restored = aspect.restore(before) and is_restored
        if "resource" in sys.modules and LIMITS.read() != self._limits:
            is_restored = LIMITS.restore(self._limits) and is_restored
        return is_restored

    def _restore_streams(self) -> None:
        for file, (kept, identity) in enumerate(self._files):
            if _identity(file) != identity:
                os.dup2(kept, file)
        try:
            self._out.flush()
            self._err.flush()
            streams = (sys.stdin, sys.stdout, sys.stderr)
            if streams == (self._in, self._out, self._err) and not self._in.closed:
                return
        except ValueError:  # it was closed or detached
            pass
        except OSError:
            return  # the disk is full; writing the record of the job will fail as well
        self._set_streams()

    def _set_streams(self) -> None:
        """Sets streams that do not close their files and that write each line at once, because a
        job may be killed at any time."""
        self._out = sys.stdout = stream(1)
        self._err = sys.stderr = stream(2)
        self._in = sys.stdin = io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8"
        )


def _identity(file: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def stream(file: int, *, closes: bool = False) -> TextIO:
    raw = io.FileIO(file, "w", closefd=closes)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
