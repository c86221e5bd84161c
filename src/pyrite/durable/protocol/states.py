"""The states of a virtual peer and the transitions between them. Only the coordinator knows the
state of a peer; the peer itself does not."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from pyrite.errors import PyriteError


class PeerState(str, Enum):
    IDLE = "idle"
    ACKING = "acking"
    ACTIVE = "active"
    WAITING = "waiting"
    SEALING = "sealing"
    REVOKED = "revoked"
    DEAD = "dead"


IDLE, ACKING, ACTIVE, WAITING, SEALING, REVOKED, DEAD = PeerState

LEGAL: Final[Mapping[PeerState, frozenset[PeerState]]] = {
    IDLE: frozenset({ACKING, DEAD}),
    ACKING: frozenset({ACTIVE, REVOKED, IDLE, DEAD}),
    ACTIVE: frozenset({SEALING, WAITING, IDLE, DEAD}),
    WAITING: frozenset({IDLE, SEALING, DEAD}),
    SEALING: frozenset({IDLE, DEAD}),
    REVOKED: frozenset({DEAD}),
    DEAD: frozenset(),
}

ON_A_PART: Final = frozenset({ACKING, ACTIVE, WAITING, SEALING})
LIVING: Final = ON_A_PART | {IDLE}
BUSY: Final = frozenset({ACKING, ACTIVE})
EVICTABLE: Final = frozenset({ACKING, ACTIVE, WAITING})
"""A sealing peer has begun to write sentinels, so it is left to finish."""


class ProtocolError(PyriteError):
    """A rule of the protocol was broken."""


def check_transition(peer: str, before: PeerState, after: PeerState) -> None:
    """Raises if a peer must not go from one state to the other.

    >>> check_transition("p1", PeerState.IDLE, PeerState.ACKING)
    >>> check_transition("p1", PeerState.IDLE, PeerState.SEALING)
    Traceback (most recent call last):
    ...
    pyrite.durable.protocol.states.ProtocolError: peer 'p1' must not go from idle to sealing; \
from idle it can only go to acking, dead. This is a bug of Pyrite: please report it
    """
    if after not in LEGAL[before]:
        can = ", ".join(state.value for state in PeerState if state in LEGAL[before])
        raise ProtocolError(
            f"peer {peer!r} must not go from {before.value} to {after.value}; from {before.value}"
            f" it can only go to {can or 'no other state'}."
            " This is a bug of Pyrite: please report it"
        )
