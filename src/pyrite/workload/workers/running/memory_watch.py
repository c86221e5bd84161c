"""Watches the memory that a job takes, while it runs. A thread looks at the worker and all
processes that it started every 50 milliseconds. What they had before the job does not count: an
earlier job may have left it. Jobs without a limit have no such thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyrite.errors import PyriteError
from pyrite.workload.input.jobs.amounts import memory_text
from pyrite.workload.system.memory import Usage, memory_of_family

LOOK_SECONDS = 0.05


class TooMuchMemory(PyriteError):
    """A job used more memory than its memory= allows."""


@contextmanager
def watching(
    limit: int, since: Mapping[int, Usage], give_up: Callable[[TooMuchMemory], None]
) -> Iterator[None]:
    """Calls `give_up`, which must end the process, if the memory that this process and its
    descendants have taken `since` then exceeds the limit. When the block has ended, it is not
    called any more."""
    has_ended = threading.Event()
    deciding = threading.Lock()

    def watch() -> None:
        while not has_ended.wait(LOOK_SECONDS):
            used = memory_of_family(os.getpid(), enough=limit, since=since)
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
