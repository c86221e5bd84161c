"""A peer as a program: when it loses its session it begins anew, under a new name."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pyrite.durable.folder.locks import Lock
from pyrite.durable.hosts.places import (
    is_folder,
    open_agreed_store,
    open_collections,
    open_queues,
)
from pyrite.durable.parts.spark_part import NewDriver, no_driver
from pyrite.durable.peer.peer import Peer, new_name
from pyrite.durable.queues.queues import QueuesError
from pyrite.durable.store.store import SessionLost, StoreError

logger = logging.getLogger("pyrite.durable")

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0


class Stopping:
    """Tells a peer to end, from any thread and at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told = threading.Event()
        self._call: Callable[[], None] = lambda: None

    def stop(self) -> None:
        with self._lock:
            self._told.set()
            self._call()

    def calls(self, call: Callable[[], None]) -> None:
        """What `stop` calls, from now on; at once if it was called before."""
        with self._lock:
            self._call = call
            if self._told.is_set():
                call()

    def wait(self, seconds: float) -> bool:
        """Whether the peer is to end; waits for so long if not."""
        return self._told.wait(seconds)


def live_as_peer(
    place: str,
    collections: str | None = None,
    *,
    new_driver: NewDriver = no_driver,
    stopping: Stopping | None = None,
) -> None:
    """Returns when the peer was told to shut down. `collections` is the URL of the Redis with the
    named maps and lists of a deployment. `new_driver` makes what runs a job on Spark."""
    stopping = stopping or Stopping()
    pause = FIRST_PAUSE
    while not stopping.wait(0):
        try:
            if _one_life(place, collections, new_driver, stopping):
                return
            pause = FIRST_PAUSE
        except (StoreError, QueuesError) as error:
            logger.warning("%s; trying again in %g s", error, pause)
            stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _one_life(place: str, url: str | None, new_driver: NewDriver, stopping: Stopping) -> bool:
    """True when it is over; False if the session was lost after the peer had begun to work."""
    name = new_name()
    with ExitStack() as closing:
        collections = open_collections(place, url)
        closing.callback(collections.close)
        store = open_agreed_store(place, url)
        closing.callback(store.close)
        if is_folder(place):  # what the peer has taken from a queue is its own while it lives
            closing.callback(Lock(Path(place), name).release)
        queues = open_queues(place)
        closing.callback(queues.close)
        address = f"{socket.gethostname()}:{os.getpid()}"
        peer = Peer(
            store,
            queues,
            collections,
            name=name,
            address=address,
            new_driver=new_driver,
        )
        stopping.calls(peer.stop)
        closing.callback(stopping.calls, lambda: None)
        try:
            peer.run()
        except SessionLost as lost:
            logger.info("a peer begins anew: %s", lost)
            return False
    return True
