"""Empty stores for tests, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import Store

NUMBERS = count()


class Places:
    """`is_slow` if there is not time for everything."""

    def __init__(self, url: str, *, is_slow: bool) -> None:
        self._url = url
        self.is_slow = is_slow

    def url(self) -> str:
        """Where a new, empty store is."""
        return f"{self._url}/test-{next(NUMBERS)}"

    def empty(self) -> Callable[[], Store]:
        """What opens a session of a new, empty store."""
        return partial(open_store, self.url())
