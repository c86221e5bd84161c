"""Files that copies of this process, which jobs and pools make by forking, must not keep open."""

from __future__ import annotations

import os
import weakref


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

        os.register_at_fork(after_in_child=close_in_copy)  # cannot be undone: so it must not keep anything alive

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.file)
