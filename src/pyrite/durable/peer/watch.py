"""What a peer sees in the store of its own nodes: whether it is alive, what it is offered, and
whether an offer is still open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyrite.durable.parts.committing import PartStopped
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import NOW, Payload, open_offer
from pyrite.durable.store.store import SessionLost, Store

LOOK_SECONDS: Final = 0.02
LONGEST_WAIT: Final = 1.0


class PeerNodes:
    """The nodes of one peer. Each is watched, and read again only when its watch has fired."""

    def __init__(
        self,
        store: Store,
        name: str,
        clock: Callable[[], float],
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._name = name
        self._clock = clock
        self._is_stopped = is_stopped
        self._looked = 0.0
        self._was_born = False
        self._more: set[str] = set()
        self._data: dict[str, str | None] = {}
        for path in (self._payload, self._cooldown, self._status, self._shutdown):
            self._read(path)

    @property
    def _payload(self) -> str:
        return paths.payload(self._name)

    @property
    def _cooldown(self) -> str:
        return paths.cooldown(self._name)

    @property
    def _status(self) -> str:
        return paths.status(self._name)

    @property
    def _shutdown(self) -> str:
        return paths.shutdown(self._name)

    @property
    def is_to_stop(self) -> bool:
        return self._is_stopped() or self._data[self._shutdown] == NOW

    def offered(self) -> Payload | None:
        """What the peer is to do now. Raises SessionLost if the coordinator takes it for dead."""
        if self._data[self._status] is not None:
            self._was_born = True
        elif self._was_born:
            raise SessionLost(f"the coordinator has given up peer {self._name}")
        return open_offer(self._data[self._payload], self._data[self._cooldown])

    def wait(self, timeout: float = LONGEST_WAIT) -> None:
        """Returns when one of the nodes may have changed."""
        path = self._store.changed(timeout)
        while path is not None:
            if path in self._data:
                self._read(path)
            self._more.discard(path)
            path = self._store.changed(0)

    def answer(self, path: str, offer: int) -> str:
        """The data of a node that the coordinator will write, as long as the offer is open."""
        while True:
            self._more.add(path)
            data = self._store.watch(path)
            if data:
                return data
            while path in self._more:
                self.wait()
                self.check(offer)

    def check(self, offer: int) -> None:
        """Raises PartStopped unless this is still the peer's offer."""
        current = self.offered()
        if current is None or current.offer != offer or self.is_to_stop:
            raise PartStopped(f"offer {offer} is over")

    def wait_until_over(self, offer: int) -> None:
        """Returns when this is not the peer's offer any more."""
        while not self.is_to_stop:
            current = self.offered()
            if current is None or current.offer != offer:
                return
            self.wait()

    def glance(self, offer: int) -> None:
        """The same as `check`, after looking for changes; cheap enough to be called all the
        time."""
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self.wait(0)
            self.check(offer)

    def _read(self, path: str) -> None:
        self._data[path] = self._store.watch(path)
