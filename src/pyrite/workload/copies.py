"""Files that copies of this process, which jobs and pools make by forking, must not keep open."""

from __future__ import annotations

import fcntl
import os
import weakref


def above_streams(file: int) -> int:
    """The same file under a number that is no standard stream's: where those were closed, it may
    have been given one of theirs."""
    if file > 2:
        return file
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(file)
    return moved


def own_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    return above_streams(reading), above_streams(writing)


class OwnFile:
    """An open file of this process alone: it is closed in every copy, right after the fork."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._is_open = True
        here = weakref.ref(self)

        def close_in_copy() -> None:
            own = here()
            if own is not None:
                own.close()

        os.register_at_fork(
            after_in_child=close_in_copy
        )  # cannot be undone: so it must not keep anything alive

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.file)
