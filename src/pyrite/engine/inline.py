"""Runs tasklets on the calling thread: this is the engine inside a Spark task."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from pyrite.engine.service import (
    LONGEST_PARK,
    SHORTEST_PARK,
    BlockingThreads,
    called,
    longest_park,
    run_alone,
)
from pyrite.engine.tasklets import DONE_NOW, IDLE, Tasklet


def run_inline(
    cooperative: Sequence[Tasklet], blocking: Sequence[Tasklet], woken: threading.Event
) -> Iterator[None]:
    """Calls the cooperative tasklets in turn, and runs the blocking ones on threads of their own,
    until all are done. Yields after each round. `woken` ends a sleep."""
    threads = BlockingThreads("pyrite-inline") if blocking else None
    running = set(blocking)
    try:
        for tasklet in blocking:
            assert threads is not None
            threads.run(lambda tasklet=tasklet: run_alone(tasklet, running.discard))  # type: ignore[misc]
        waiting = list(cooperative)
        park = SHORTEST_PARK
        while waiting or running:
            progress = False
            left = []
            for tasklet in waiting:
                answer = called(tasklet)
                progress = progress or answer != IDLE
                if answer != DONE_NOW:
                    left.append(tasklet)
            waiting = left
            yield
            if progress:
                park = SHORTEST_PARK
            else:
                woken.wait(park)
                park = min(2 * park, LONGEST_PARK if running else longest_park(waiting))
            woken.clear()
    finally:
        if threads is not None:
            threads.close(wait=False)
