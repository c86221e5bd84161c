"""Deletes the queues of ended jobs, and what jobs that did not complete have prepared. It has a
thread of its own: the servers may be slow or not there, and the leader must not wait for them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from threading import Condition, Thread
from typing import Final

logger = logging.getLogger("pyrite.durable.coordinator")

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 30.0


@dataclass(order=True, slots=True)
class _Try:
    at: float
    job: str
    is_complete: bool = field(compare=False)
    pause: float = field(default=FIRST_PAUSE, compare=False)


class Closing:
    """`close_queues` is called with each job, and whether it is complete, until it does not raise;
    it may be called for the same job again. After each success `wake` is called, and `closed` has
    the job."""

    def __init__(
        self, close_queues: Callable[[str, bool], object], wake: Callable[[], None]
    ) -> None:
        self._close_queues = close_queues
        self._wake = wake
        self._changed = Condition()
        self._tries: list[_Try] = []
        self._closed: list[str] = []
        self._open = 0
        self._is_stopped = False
        self._thread: Thread | None = None

    def close(self, job: str, *, is_complete: bool) -> None:
        with self._changed:
            self._open += 1
            heappush(self._tries, _Try(time.monotonic(), job, is_complete))
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="closes queues", daemon=True)
                self._thread.start()

    def closed(self) -> list[str]:
        """The jobs whose queues are gone since the last call."""
        if not self._closed:  # most calls; a list that fills right now is seen by the next one
            return []
        with self._changed:
            closed, self._closed = self._closed, []
            self._open -= len(closed)
            return closed

    @property
    def is_busy(self) -> bool:
        """Whether there are jobs that `closed` has not returned yet."""
        return self._open > 0

    def stop(self) -> None:
        """Begins no more tries. One that is under way is not waited for."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while (next_try := self._next()) is not None:
            try:
                self._close_queues(next_try.job, next_try.is_complete)
            except Exception as problem:
                self._failed(next_try, problem)
            else:
                with self._changed:
                    self._closed.append(next_try.job)
                    if not self._is_stopped:
                        self._wake()

    def _next(self) -> _Try | None:
        with self._changed:
            while not self._is_stopped:
                now = time.monotonic()
                if self._tries and self._tries[0].at <= now:
                    return heappop(self._tries)
                self._changed.wait(self._tries[0].at - now if self._tries else None)
            return None

    def _failed(self, failed: _Try, problem: Exception) -> None:
        logger.warning(
            "the queues of job %r cannot be deleted yet; the next try is in %g s: %s",
            failed.job,
            failed.pause,
            problem,
        )
        pause = min(2 * failed.pause, LONGEST_PAUSE)
        again = _Try(time.monotonic() + failed.pause, failed.job, failed.is_complete, pause)
        with self._changed:
            heappush(self._tries, again)
