"""The executions that a member knows, and what to do with messages about them, which may arrive in
any order. Pure; the caller passes the time.

Data may arrive before the init of its execution, or after the end. A cancel may overtake the init.
An init may never come. An execution is in one of three states: it waits for its init and holds the
data that has arrived; it runs; or it ended badly and is remembered for a while, so that late data
does not create it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Context = TypeVar("Context")

REMEMBERED_SECONDS: Final = 5.0
"""How long the id of an execution that failed or was cancelled is remembered."""
NEVER_INITIALIZED_SECONDS: Final = 300.0
"""How long data that arrived before the init is kept, and for how long after that the init is
refused: without the dropped data the result would be wrong. It is little data, since nothing is
acked before the init."""


@dataclass(slots=True)
class _Known(Generic[Context]):
    context: Context
    since: float
    coordinator: str | None = None
    """None until its init."""


class Executions(Generic[Context]):
    """All executions of one member. `new` makes the context of an execution from its id."""

    def __init__(self, new: Callable[[bytes], Context]) -> None:
        self._new = new
        self._known: dict[bytes, _Known[Context]] = {}
        self._remembered: dict[bytes, float] = {}
        """By id, when it is forgotten."""

    def __len__(self) -> int:
        return len(self._known)

    def find(self, id: bytes) -> Context | None:
        """The context of an execution that waits for its init or runs."""
        known = self._known.get(id)
        return known.context if known is not None else None

    def running(self) -> list[Context]:
        """Any thread may call this."""
        known = list(self._known.values())
        return [each.context for each in known if each.coordinator is not None]

    def waiting(self) -> list[Context]:
        """What holds data and waits for its init."""
        return [each.context for each in self._known.values() if each.coordinator is None]

    def data(self, id: bytes, now: float) -> Context | None:
        """The context that data belongs to; None if the data must be dropped."""
        known = self._known.get(id)
        if known is None:
            if self.was_cancelled(id, now):
                return None
            known = self._known[id] = _Known(self._new(id), now)
        return known.context

    def init(self, id: bytes, coordinator: str, now: float) -> Context | None:
        """The context to run, with the data that arrived before. None if it must not run: it was
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
        """The context to stop, if it runs. Otherwise a later init is refused."""
        known = self._known.get(id)
        if known is not None and known.coordinator is not None:
            return known.context
        self._forget(id, now)
        return None

    def is_lost(self, id: bytes, now: float) -> None:
        """An execution that waits for its init cannot end well any more. Its init may still come,
        or never: it is kept as long as the id of one that failed."""
        self._known[id].since = now + REMEMBERED_SECONDS - NEVER_INITIALIZED_SECONDS

    def was_cancelled(self, id: bytes, now: float) -> bool:
        """Whether an execution recently failed or was cancelled."""
        return self._remembered.get(id, now) > now

    def ended(self, id: bytes, now: float, *, well: bool) -> None:
        """An execution has ended here. If it ended well, no more data arrives."""
        if well:
            self._known.pop(id, None)
        else:
            self._forget(id, now)

    def tick(self, now: float) -> list[bytes]:
        """Drops what is too old. Returns the ids of executions that were never initialized."""
        for id, until in list(self._remembered.items()):
            if until <= now:
                del self._remembered[id]
        dropped = [
            id
            for id, known in self._known.items()
            if known.coordinator is None and known.since + NEVER_INITIALIZED_SECONDS <= now
        ]
        for id in dropped:
            self._forget(id, now, NEVER_INITIALIZED_SECONDS)
        return dropped

    @property
    def is_idle(self) -> bool:
        """Whether a tick has nothing to do, now or later."""
        return not self._known and not self._remembered

    def to_check(self) -> dict[str, list[bytes]]:
        """By coordinator, the executions to ask it about."""
        by_coordinator: dict[str, list[bytes]] = {}
        for id, known in self._known.items():
            if known.coordinator is not None:
                by_coordinator.setdefault(known.coordinator, []).append(id)
        return by_coordinator

    def unknown(self, coordinator: str, ids: Collection[bytes]) -> list[Context]:
        """What to stop after a coordinator has said which executions it does not know."""
        return [
            known.context
            for id in ids
            if (known := self._known.get(id)) is not None and known.coordinator == coordinator
        ]

    def coordinator_gone(self, coordinator: str) -> list[Context]:
        """What to stop after a coordinator was lost: it knows none any more."""
        return self.unknown(coordinator, self.to_check().get(coordinator, ()))

    def _forget(self, id: bytes, now: float, seconds: float = REMEMBERED_SECONDS) -> None:
        self._known.pop(id, None)
        self._remembered[id] = max(now + seconds, self._remembered.get(id, 0.0))
