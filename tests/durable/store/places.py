"""The places that a store can be in, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import Store, StoreError


class Place:
    """An empty store. `session` is the time in which ephemeral nodes of a killed process go."""

    def __init__(self, url: str, session: float) -> None:
        self.url = url
        self.session = session
        self._opened: list[Store] = []

    def open(self) -> Store:
        store = open_store(self.url)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            with suppress(StoreError):
                store.close()


def until(store: Store, look: Callable[[], object], seconds: float = 20.0) -> None:
    """Waits for changes until something is so. The watches must be armed by `look`."""
    while not look():
        assert store.changed(seconds) is not None, "no change came"


def fired(store: Store, seconds: float = 10.0) -> Iterator[str]:
    """The watches that fire, until none does for a moment."""
    wait = seconds
    while (path := store.changed(wait)) is not None:
        yield path
        wait = 0.1
