"""What happens to an event that the rules cannot handle. That is a bug, for example a transition
that is not legal. The leader ends, since what it knows may be wrong, and the next one reads the
store and tries the event again. It must not go on like this for ever: all jobs would stand still.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Collect,
    Complete,
    Death,
    Event,
    Evict,
    Fail,
    Offer,
    Plan,
    Reject,
    Revoke,
    Seal,
    words,
)

MOST_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Stumble:
    """The last event that could not be handled, and how often it was tried."""

    event: tuple[str | int, ...]
    tries: int
    error: str

    def text(self) -> str:
        return json.dumps([self.event, self.tries, self.error], separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Stumble:
        event, tries, error = json.loads(text)
        return cls(tuple(event), tries, error)


def again(before: Stumble | None, event: Event, error: str) -> Stumble:
    """The leader has stumbled over an event, maybe not for the first time."""
    tries = before.tries if before is not None and before.event == words(event) else 0
    return Stumble(words(event), tries + 1, error)


def instead(event: Event, stumble: Stumble | None) -> Event | None:
    """What to handle in place of an event: after three tries something that is always safe. A plan
    is rejected. A peer whose request cannot be handled is treated as one that has lost its pulse:
    it stops, and its part is offered again. If that does not help, the event is left out, as all
    others are after three tries. But without the coordinator's own events no job goes on, so they
    are tried for ever.

    >>> stumble = Stumble(("seal", "p1", 7), 3, "oh")
    >>> instead(Seal("p1", 7), stumble), instead(Seal("p2", 8), stumble)
    (Death(peer='p1'), Seal(peer='p2', offer=8))
    """
    if stumble is None or stumble.tries < MOST_TRIES or stumble.event != words(event):
        return event
    if isinstance(event, Offer | Collect):
        return event
    if stumble.tries < 2 * MOST_TRIES:
        match event:
            case Plan(job):
                return Reject(job, f"the coordinator cannot plan the job: {stumble.error}")
            case Ack(peer) | Seal(peer) | Complete(peer) | Fail(peer) | Revoke(peer) | Evict(peer):
                return Death(peer)
    return None
