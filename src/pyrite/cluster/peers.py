"""The other members, as one member sees them: who is connected, and whom to dial when.

Of two members the lower-numbered one dials. A connection that has ended is not resumed: the next
one is a new connection, possibly to another incarnation.
"""

from __future__ import annotations

from typing import Final

from pyrite.wire.identity import Identity
from pyrite.wire.wire import Connection

FIRST_WAIT: Final = 0.02
LONGEST_WAIT: Final = 0.2
"""Seconds between tries to reach a member that is not there: they double."""


class Peers:
    def __init__(self, me: Identity) -> None:
        self.me = me
        self._connections: dict[str, Connection] = {}
        own = me.members.index(me.address) if me.members else 0
        self._to_dial: dict[str, float] = dict.fromkeys(me.members[own + 1 :], 0.0)
        """Members to dial, and when."""
        self._waits = dict.fromkeys(self._to_dial, FIRST_WAIT)

    def get(self, address: str) -> Connection | None:
        return self._connections.get(address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All members, this one included."""
        return self.me.members

    @property
    def objection(self) -> str | None:
        """Why this member takes no jobs yet; None if it does."""
        return None

    @property
    def is_complete(self) -> bool:
        return len(self._connections) == len(self.me.members) - 1

    @property
    def incarnations(self) -> list[tuple[str, str | None]]:
        """All members and their incarnations, this one included; None for one that is missing. Any
        thread may ask for this."""
        connections = self._connections.copy()
        return [
            (
                address,
                self.me.incarnation
                if address == self.me.address
                else connections[address].peer.incarnation
                if address in connections
                else None,
            )
            for address in self.me.members
        ]

    def connected(self, connection: Connection) -> Connection | None:
        """A member has connected. Returns the connection to drop, if it has two now."""
        address = connection.peer.address
        before = self._connections.get(address)
        self._connections[address] = connection
        self._to_dial.pop(address, None)
        if address in self._waits:
            self._waits[address] = FIRST_WAIT
        return before

    def lost(self, connection: Connection, now: float) -> bool:
        """A connection has ended. Returns whether its member is gone; it may have another
        connection."""
        address = connection.peer.address
        if self._connections.get(address) is not connection:
            return False
        del self._connections[address]
        if address in self._waits:
            self._to_dial[address] = now
        return True

    def not_reached(self, address: str, now: float, reason: str) -> None:
        wait = self._waits.get(address)
        if wait is not None:
            self._to_dial[address] = now + wait
            self._waits[address] = min(2 * wait, LONGEST_WAIT)

    def to_dial(self, now: float) -> list[str]:
        """The members to dial now."""
        if not self._to_dial:
            return []
        due = [address for address, at in self._to_dial.items() if at <= now]
        for address in due:
            del self._to_dial[address]
        return due

    @property
    def next_dial(self) -> float | None:
        return min(self._to_dial.values(), default=None)
