"""Finds what clients have left that died while they submitted a job: its queues, and its nodes
without a plan. Nobody else would delete these."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Final

from pyrite.durable.store.store import Store

logger = logging.getLogger("pyrite.durable.coordinator")

EVERY: Final = 60.0
AGAIN: Final = 5.0
"""Jobs are orphans if they look so twice, so many seconds apart: in between a client that has lost
its session has a new one, and its node is there again."""
OWNED: Final = ("/submitting", "/plan", "/job")
"""In this order: a job is never at an earlier one again, so it is not missed between two."""


class Orphans:
    """`list_queues` returns the jobs that have queues. It is called on a thread of its own: the
    servers of the queues may be slow. `wake` is called when it has returned."""

    def __init__(self, list_queues: Callable[[], Iterable[str]], wake: Callable[[], None]) -> None:
        self._list_queues = list_queues
        self._wake = wake
        self._listed: frozenset[str] | None = None
        self._suspects: frozenset[str] = frozenset()
        self.due: float | None = None

    def found(self, store: Store, *, now: float) -> list[str]:
        """The jobs to delete, if the time has come to look for them."""
        if self.due is not None and now >= self.due:
            self.due = None
            Thread(target=self._list, name="lists queues", daemon=True).start()
        if self._listed is None:
            return []
        listed, self._listed = self._listed, None
        lost = _without_owner(store, listed)
        orphans, self._suspects = lost & self._suspects, lost - self._suspects
        self.due = now + (AGAIN if self._suspects else EVERY)
        return sorted(orphans)

    def _list(self) -> None:
        try:
            self._listed = frozenset(self._list_queues())
        except Exception as problem:
            logger.warning("the queues of dead clients are looked for later: %s", problem)
            self._listed = frozenset()
        self._wake()


def _without_owner(store: Store, queues: frozenset[str]) -> frozenset[str]:
    """The nodes of owners are read after the list of the queues: a client creates its node before
    the queues."""
    names = queues.union(store.children("/catalog"), store.children("/workflow"))
    if not names:
        return names
    return names.difference(*(store.children(root) for root in OWNED))
