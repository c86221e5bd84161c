"""Who leads: each coordinator stands with a proposal, and the lowest one leads. Each watches only
the one before it, so one death wakes one coordinator."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.store import SessionLost, Store


def before(name: str, names: Sequence[str]) -> str | None:
    """The proposal to watch: the next lower one. None if this one is the lowest and leads. Raises
    SessionLost if the proposal is not there, since it goes only with its session.

    >>> names = ["proposal-0000000012", "proposal-0000000007", "proposal-0000000009"]
    >>> before(names[0], names), before(names[1], names)
    ('proposal-0000000009', None)
    """
    if name not in names:
        raise SessionLost(f"the proposal {name} to lead is gone, so its session has ended")
    return max(
        (other for other in names if _number(other) < _number(name)), key=_number, default=None
    )


class Candidate:
    """Stands for election with a store, from now on until the store is closed."""

    def __init__(self, store: Store, data: str = "", *, path: str = paths.ELECTION) -> None:
        self._store = store
        self._path = path
        self.name = store.stand(path, data)
        self._watched: str | None = None

    def leads(self) -> bool:
        """Whether it leads now. If not, the store's `changed` tells `watched` when to ask again.
        Who leads does so until its session ends."""
        while (other := before(self.name, self._store.children(self._path))) is not None:
            self._watched = f"{self._path}/{other}"
            if self._store.watch(self._watched) is not None:
                return False
        self._watched = None
        return True

    @property
    def watched(self) -> str | None:
        """The path of the proposal before this one; None if this one leads."""
        return self._watched

    def wait_to_lead(self, timeout: float | None = None) -> bool:
        """Waits until it leads, or for so many seconds, or until the store is woken. It is for one
        who has nothing else to watch: other paths that change are not told."""
        give_up = None if timeout is None else time.monotonic() + timeout
        while not self.leads():
            path: str | None = None
            while path != self._watched:
                path = self._store.changed(_left(give_up))
                if path is None:
                    return False
        return True


def _left(give_up: float | None) -> float | None:
    return None if give_up is None else max(0.0, give_up - time.monotonic())


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
