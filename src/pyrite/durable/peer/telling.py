"""What a peer tells those who watch its jobs: about once a second, in one small write. It happens
between two rounds of work; nothing waits for it, and nothing fails if it cannot be told."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from pyrite.durable.parts.tally import Tallies, Tally, Told
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.store.limits import MOST_BYTES
from pyrite.durable.store.store import SessionLost, Store, StoreError
from pyrite.system.resident import resident_bytes

logger = logging.getLogger("pyrite.durable")

PERIOD: Final = 1.0
MOST_SHARE: Final = 50
"""Telling takes at most one part in so many of the time, however slow the store is."""
FULL: Final = 16_000
"""Characters. What comes after these goes into another node, so that each write is small."""
LONGEST: Final = MOST_BYTES // 2
"""No node has more characters, whatever happens."""
MOST_JOBS: Final = 8


class _Page:
    """A node. It is written again until it is full."""

    def __init__(self, job: str, path: str) -> None:
        self.job = job
        self.path = path
        self.tallies: list[Tally] = []
        self.told: tuple[Told, ...] = ()
        self.length = 0
        self.is_there = False


class Telling:
    def __init__(self, store: Store, peer: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._peer = peer
        self._clock = clock
        self._pages: dict[str, _Page] = {}
        """Of each job the one that is not full."""
        self._page_count = 0
        self._due = math.inf

    def begin(self, part: Part, offer: int, *, by_processor: bool = False) -> Tally:
        """The tally of an offer that the peer takes. Of a job that ends within a second, nothing is
        told."""
        page = self._pages.get(part.job)
        if page is not None and page.length > FULL:
            self._tell(page)
            page = None
        if page is None:
            page = self._new_page(part.job)
        tally = Tally(part, offer, by_processor=by_processor)
        page.tallies.append(tally)
        if self._due == math.inf:
            self._due = self._clock() + PERIOD
        return tally

    def tick(self, *, is_idle: bool = False) -> None:
        """Tells what there is to tell, if it is time to. A peer that is idle has told all then."""
        if self._due == math.inf or (began := self._clock()) < self._due:
            return
        for page in list(self._pages.values()):
            self._tell(page)
        now = self._clock()
        pause = max(PERIOD, MOST_SHARE * (now - began))
        self._due = math.inf if is_idle else began + pause

    def _new_page(self, job: str) -> _Page:
        if len(self._pages) >= MOST_JOBS:  # most often, the oldest one has ended
            oldest = next(iter(self._pages.values()))
            self._tell(oldest)
            self._pages.pop(oldest.job, None)
        page = self._pages[job] = _Page(job, paths.live_of(job, self._peer, self._page_count))
        self._page_count += 1
        return page

    def _tell(self, page: _Page) -> None:
        told = tuple(each for tally in page.tallies if (each := tally.told()) is not None)
        if told == page.told:
            return
        text = Tallies(resident_bytes(), told).text()
        if len(text) > LONGEST and len(page.tallies) > 1:
            self._tell_in_two(page)
            return
        if len(text) > LONGEST:
            text = Tallies(resident_bytes(), tuple(each.in_short() for each in told)).text()
        try:
            has_ended = not self._write(page, text)
        except SessionLost:
            raise
        except StoreError as error:
            logger.debug("peer %s could not tell what it has done: %s", self._peer, error)
            return
        if has_ended:
            self._pages.pop(page.job, None)
        page.told, page.length = told, len(text)

    def _tell_in_two(self, page: _Page) -> None:
        """So many parts began within a second that a node cannot hold them. Only the last one may
        still run."""
        half = len(page.tallies) // 2
        later = page.tallies[half:]
        del page.tallies[half:]
        self._tell(page)
        if page.job in self._pages:
            rest = self._new_page(page.job)
            rest.tallies += later
            self._tell(rest)

    def _write(self, page: _Page, text: str) -> bool:
        """False if the job has ended."""
        if page.is_there:
            return self._store.set(page.path, text)
        if self._store.get(paths.live(page.job)) is None:
            return False
        page.is_there = self._store.create_child(page.path, text) is not None
        return page.is_there
