"""The executions that a member knows, and what becomes of messages about them, in whatever order
they arrive. Pure; the clock is the caller's.

Data may come before its execution's init, or after its end; a cancel may overtake the init; an init
may never come. An execution is here in one of three states: it waits for its init and holds what
has arrived; it runs; or it ended badly and is remembered for a while, so that what still arrives
for it does not bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Context = TypeVar("Context")

REMEMBERED_SECONDS: Final = 5.0
"""How long the id of an execution that failed or was cancelled is remembered."""
NEVER_INITIALIZED_SECONDS: Final = 300.0
"""How long what arrived before init is kept. Should init come after all, what was dropped would be
missing without a trace; so this is long. What is kept is little: nothing was acked yet."""


@dataclass(slots=True)
class _Known(Generic[Context]):
    context: Context
    since: float
    coordinator: str | None = None
    """None as long as it waits for its init."""


class Executions(Generic[Context]):
    """All executions of one member. `new` makes the context of an execution from its id."""

    def __init__(self, new: Callable[[bytes], Context]) -> None:
        self._new = new
        self._known: dict[bytes, _Known[Context]] = {}
        self._remembered: dict[bytes, float] = {}
        """By id, when it is forgotten. In this order, since all are remembered equally long."""

    def __len__(self) -> int:
        return len(self._known)

    def find(self, id: bytes) -> Context | None:
        """The context of an execution that waits or runs."""
        known = self._known.get(id)
        return known.context if known is not None else None

    def running(self) -> list[Context]:
        return [known.context for known in self._known.values() if known.coordinator is not None]

    def data(self, id: bytes, now: float) -> Context | None:
        """Where data that arrived belongs; None if it is to be dropped."""
        known = self._known.get(id)
        if known is None:
            if self.was_cancelled(id, now):
                return None
            known = self._known[id] = _Known(self._new(id), now)
        return known.context

    def init(self, id: bytes, coordinator: str, now: float) -> Context | None:
        """What to run, with all that arrived for it before; None if it is not to be run: it was
        cancelled, or runs already."""
        known = self._known.get(id)
        if known is None:
            if self.was_cancelled(id, now):
                return None
            known = self._known[id] = _Known(self._new(id), now)
        if known.coordinator is not None:
            return None
        known.coordinator = coordinator
        return known.context

    def cancel(self, id: bytes, now: float) -> Context | None:
        """What to stop, if it runs. Else it will not run should its init still come."""
        known = self._known.get(id)
        if known is not None and known.coordinator is not None:
            return known.context
        self._forget(id, now)
        return None

    def was_cancelled(self, id: bytes, now: float) -> bool:
        """Whether an execution ended badly, or was cancelled before it began, not long ago."""
        return self._remembered.get(id, now) > now

    def ended(self, id: bytes, now: float, *, well: bool) -> None:
        """A run has ended here. After one that ended well nothing arrives any more."""
        if well:
            self._known.pop(id, None)
        else:
            self._forget(id, now)

    def tick(self, now: float) -> list[bytes]:
        """Drops what is too old; gives the ids of executions that were never initialized."""
        for id, until in list(self._remembered.items()):
            if until > now:
                break
            del self._remembered[id]
        dropped = [
            id
            for id, known in self._known.items()
            if known.coordinator is None and known.since + NEVER_INITIALIZED_SECONDS <= now
        ]
        for id in dropped:
            del self._known[id]
        return dropped

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing that a tick could ever drop."""
        return not self._known and not self._remembered

    def to_check(self) -> dict[str, list[bytes]]:
        """By coordinator, the executions to ask it about."""
        by_coordinator: dict[str, list[bytes]] = {}
        for id, known in self._known.items():
            if known.coordinator is not None:
                by_coordinator.setdefault(known.coordinator, []).append(id)
        return by_coordinator

    def unknown(self, coordinator: str, ids: Collection[bytes]) -> list[Context]:
        """What to stop after a coordinator said which executions it does not know."""
        return [
            known.context
            for id in ids
            if (known := self._known.get(id)) is not None and known.coordinator == coordinator
        ]

    def coordinator_gone(self, coordinator: str) -> list[Context]:
        """What to stop: a coordinator that is gone knows none."""
        return self.unknown(coordinator, self.to_check().get(coordinator, ()))

    def _forget(self, id: bytes, now: float) -> None:
        self._known.pop(id, None)
        self._remembered.pop(id, None)
        self._remembered[id] = now + REMEMBERED_SECONDS
