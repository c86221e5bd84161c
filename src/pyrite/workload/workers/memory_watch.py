"""Watches the memory that a job uses, while it runs. A thread looks at the worker and all processes
that it started every 50 milliseconds. Jobs without a limit have no such thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyrite.errors import PyriteError
from pyrite.workload.input.amounts import memory_text
from pyrite.workload.system.memory import memory_of_family

LOOK_SECONDS = 0.05
_FRESH = memory_of_family(os.getpid())  # of this process, before it has run any job


def left_in_memory() -> int:
    """The bytes that earlier jobs of this process have left in memory."""
    return max(0, memory_of_family(os.getpid()) - _FRESH)


class TooMuchMemory(PyriteError):
    """A job used more memory than its memory= allows."""


@contextmanager
def watching(
    limit: int, give_up: Callable[[TooMuchMemory], None], *, left: int = 0
) -> Iterator[None]:
    """Calls `give_up`, which must end the process, if the memory of this process and its
    descendants, without the bytes that earlier jobs have `left`, exceeds the limit. When the block
    has ended, it is not called any more."""
    has_ended = threading.Event()
    deciding = threading.Lock()

    def watch() -> None:
        while not has_ended.wait(LOOK_SECONDS):
            used = memory_of_family(os.getpid(), enough=limit + left) - left
            if used > limit:
                with deciding:
                    if not has_ended.is_set():
                        give_up(
                            TooMuchMemory(
                                f"used {memory_text(used)}, more than its memory= of "
                                f"{memory_text(limit)}"
                            )
                        )
                return

    threading.Thread(target=watch, name="memory watch", daemon=True).start()
    try:
        yield
    finally:
        with deciding:
            has_ended.set()
