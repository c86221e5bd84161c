"""What the processors of one execution write to collections on other members: sent without waiting,
and waited for at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from pyrite.cluster.collections.storage import Request

MOST_UNDER_WAY: Final = 64


class Writes:
    """`start` sends a request, and `wait` waits for its reply. Processors with threads of their own
    may use it, too."""

    def __init__(
        self,
        start: Callable[[str, Request], Future[Any]],
        wait: Callable[[Future[Any]], Any],
    ) -> None:
        self._start = start
        self._wait = wait
        self._under_way: deque[Future[Any]] = deque()

    def tell(self, address: str, request: Request) -> None:
        """Writes. Raises, maybe later, if that failed."""
        self._under_way.append(self._start(address, request))
        if len(self._under_way) > MOST_UNDER_WAY:
            self._wait_for_oldest()

    def flush(self) -> None:
        """Waits until everything is written. Raises if anything failed."""
        while self._under_way:
            self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        try:
            oldest = self._under_way.popleft()
        except IndexError:  # another thread was faster
            return
        self._wait(oldest)
