"""Open files that processes forked from this one, by jobs or by pools, must not keep open."""

from __future__ import annotations

import fcntl
import os
import weakref


def above_streams(file: int) -> int:
    """The same open file with a descriptor above 2. If standard streams were closed, the system may
    have given the file one of their descriptors."""
    if file > 2:
        return file
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(file)
    return moved


def own_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    return above_streams(reading), above_streams(writing)


class OwnFile:
    """An open file that belongs to this process only: it is closed in every forked process, right
    after the fork."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._is_open = True
        here = weakref.ref(self)

        def close_in_copy() -> None:
            own = here()
            if own is not None:
                own.close()

        # This cannot be undone, so the function must not keep this object alive.
        os.register_at_fork(after_in_child=close_in_copy)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.file)
