"""The leaders among the sentinels in the queue of a concurrent part, as nodes of the store. The
first sentinel whose id is written there leads; nobody changes it, so it is read only once."""

from __future__ import annotations

from collections.abc import Mapping, Set

from pyrite.durable.parts.committing import PartStopped
from pyrite.durable.protocol.exactness.sentinels import End
from pyrite.durable.protocol.exactness.tails import Leader
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.store.store import Store


class Leaders:
    def __init__(self, store: Store, part: Part) -> None:
        self._store = store
        self._part = part
        self._known: dict[End, Leader] = {}

    def elect(self, end: End, candidate: Leader) -> Leader:
        """The leader of an end: this one, if there was none. Raises PartStopped if the nodes of the
        part are gone, because it is over."""
        if end not in self._known:
            path = paths.leader(self._part, end.edge, end.upstream)
            if self._store.create_child(path, candidate.text()):
                self._known[end] = candidate
            else:
                self._known[end] = self._read(path)
        return self._known[end]

    def known(self, ends: Set[End]) -> Mapping[End, Leader]:
        """The leaders of these ends, as far as there are any."""
        for end in ends - self._known.keys():
            text = self._store.get(paths.leader(self._part, end.edge, end.upstream))
            if text is not None:
                self._known[end] = Leader.read(text)
        return self._known

    def _read(self, path: str) -> Leader:
        text = self._store.get(path)
        if text is None:
            raise PartStopped(f"{self._part} is over")
        return Leader.read(text)
