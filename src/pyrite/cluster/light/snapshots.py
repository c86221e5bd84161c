"""What the sources of one execution read from named maps and lists on one member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyrite.context import CollectionKind, NamedCollection


class Snapshots:
    """The member's share of each map and list, as it was before any processor of the execution
    began on any member: so the execution does not read what it writes."""

    def __init__(self) -> None:
        self._taken: dict[NamedCollection, Sequence[Any] | Exception] = {}
        self.coordinator = ""
        """Who asked for them: without it, the init never comes."""

    def take(
        self,
        reads: Iterable[NamedCollection],
        share: Callable[[CollectionKind, str], Sequence[Any]],
    ) -> None:
        """Takes those that were not taken before. An error is raised later, by the vertex that
        reads."""
        for each in reads:
            if each not in self._taken:
                try:
                    self._taken[each] = share(*each)
                except Exception as error:
                    self._taken[each] = error

    def of(self, kind: CollectionKind, name: str) -> Sequence[Any]:
        taken = self._taken[kind, name]
        if isinstance(taken, Exception):
            raise taken
        return taken

    def drop(self) -> None:
        """Called when all sources are open."""
        self._taken.clear()
