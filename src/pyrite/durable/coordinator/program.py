"""A coordinator as a process: it stands for election, waits as a stand-by, leads, and begins anew
with a new session when it has lost the old one."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from pyrite.durable.coordinator.leader import ACK_SECONDS, Leader
from pyrite.durable.store.election import Candidate
from pyrite.durable.store.store import EpochIsOver, SessionLost, Store, StoreError

logger = logging.getLogger("pyrite.durable.coordinator")

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0


class Coordinator:
    """`open_store` makes a new session. `close_queues` deletes the queues of a job, and
    `list_queues` tells which jobs have queues; see `Leader`. The store may be gone for a while, at
    the start too: the coordinator says so and tries again."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        close_queues: Callable[[str, bool], object],
        list_queues: Callable[[], Iterable[str]],
        *,
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        self._open_store = open_store
        self._close_queues = close_queues
        self._list_queues = list_queues
        self._ack_seconds = ack_seconds
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._wake: Callable[[], None] = lambda: None
        self._pause = FIRST_PAUSE
        self._problem = ""
        self._name = f"{socket.gethostname()}:{os.getpid()}"

    def run(self) -> None:
        """Until it is stopped. Its session is closed then, so that a stand-by leads at once."""
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._session()
            except (EpochIsOver, SessionLost) as end:
                logger.warning("begins anew, since its session or its term is over: %s", end)
            except StoreError as problem:
                self._say_once(f"tries again until it can: {problem}")
            except Exception:
                logger.exception("leads no more and begins anew, because of an error")
            self._rest(time.monotonic() - began)

    def stop(self) -> None:
        """Lets `run` return. Any thread may call it."""
        with self._lock:
            self._stopped.set()
            self._wake()

    def _session(self) -> None:
        store = self._open_store()
        try:
            self._wakes_with(store.wake)
            if self._problem:
                self._say_once("")
                logger.warning("the store can be used again")
            candidate = Candidate(store, self._name)
            if not candidate.leads():
                logger.info("is a stand-by")
            while not self._stopped.is_set():
                if candidate.wait_to_lead():
                    self._lead(store)
        finally:
            self._wakes_with(lambda: None)
            store.close()

    def _lead(self, store: Store) -> None:
        leader = Leader(store, self._close_queues, self._list_queues, ack_seconds=self._ack_seconds)
        try:
            leader.begin()
            self._wakes_with(leader.stop)
            leader.run()
        finally:
            leader.stop()

    def _wakes_with(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._wake = wake
            if self._stopped.is_set():
                wake()

    def _say_once(self, problem: str) -> None:
        """A store that is gone for an hour is told of once."""
        if problem and problem != self._problem:
            logger.warning(problem)
        self._problem = problem

    def _rest(self, worked: float) -> None:
        """Not to try again and again what cannot work now. Who has worked for a while has no
        reason to wait."""
        self._pause = FIRST_PAUSE if worked > LONGEST_PAUSE else self._pause
        self._stopped.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
