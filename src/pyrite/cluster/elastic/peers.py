"""The other members of a cluster whose members come and go, as one member sees them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pyrite.cluster.elastic.roster import Incarnations, Node, Roster
from pyrite.cluster.peers import FIRST_WAIT, LONGEST_WAIT, Peers
from pyrite.wire.identity import Identity
from pyrite.wire.wire import Connection

logger = logging.getLogger("pyrite.cluster")


class ElasticPeers(Peers):
    """`on_change` is called with the addresses of the members that new executions use; `announce`
    with the node of this member when it is connected to all members before it."""

    def __init__(
        self,
        me: Identity,
        *,
        on_change: Callable[[Sequence[str]], None],
        announce: Callable[[Node], None],
    ) -> None:
        super().__init__(me)
        self._on_change = on_change
        self._announce = announce
        self._roster = Roster()
        self._chosen: Incarnations = ((me.address, me.incarnation),)
        self._has_joined = False
        self._under_way: set[str] = set()
        """Members that were dialed, and have neither answered nor failed to."""
        self._warned: set[tuple[Node, str]] = set()

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.me.address, *self._connections.copy()

    @property
    def is_complete(self) -> bool:
        return False  # as long as members may come

    @property
    def incarnations(self) -> list[tuple[str, str | None]]:
        """The members of a new execution."""
        return list(self._chosen)

    @property
    def objection(self) -> str | None:
        if self._has_joined:
            return None
        missing = ", ".join(node.address for node in self._roster.missing(self._connected()))
        why = f"it is not connected to {missing} yet" if missing else "it waits for ZooKeeper"
        return f"has not joined cluster '{self.me.cluster}' yet: {why}"

    def listed(self, roster: Roster) -> None:
        """ZooKeeper says who is there."""
        self._roster = roster
        self._warned = {each for each in self._warned if each[0] in roster.nodes}
        to_dial = {node.address for node in roster.before}
        for address in self._waits.keys() - to_dial:
            del self._waits[address]
            self._to_dial.pop(address, None)
        for address in to_dial - self._waits.keys():
            self._waits[address] = FIRST_WAIT
            if address not in self._connections and address not in self._under_way:
                self._to_dial[address] = 0.0
        self._update()

    def connected(self, connection: Connection) -> Connection | None:
        self._under_way.discard(connection.peer.address)
        before = self._connections.get(connection.peer.address)
        if before is not None and _is_better_of_two(before, connection):
            return connection
        before = super().connected(connection)
        self._update()
        return before

    def lost(self, connection: Connection, now: float) -> bool:
        is_gone = super().lost(connection, now)
        self._update()
        return is_gone

    def not_reached(self, address: str, now: float, reason: str) -> None:
        self._under_way.discard(address)
        if address in self._connections:
            return
        if self._waits.get(address) == LONGEST_WAIT:
            self._warn(address, reason)
        super().not_reached(address, now, reason)

    def to_dial(self, now: float) -> list[str]:
        due = super().to_dial(now)
        self._under_way.update(due)
        return due

    def _warn(self, address: str, reason: str) -> None:
        """Says each thing once. Of one that leaves, the connection may go before the node does."""
        for node in self._roster.before:
            if node.address == address and (node, reason) not in self._warned:
                self._warned.add((node, reason))
                logger.warning(
                    "member %s, which ZooKeeper lists, cannot be reached: %s", address, reason
                )

    def _connected(self) -> dict[str, str]:
        connections = self._connections.copy()
        return {address: each.peer.incarnation for address, each in connections.items()}

    def _update(self) -> None:
        roster, connected = self._roster, self._connected()
        if roster.own is not None and not roster.missing(connected):
            self._announce(roster.own)
        chosen = roster.chosen(self.me.address, self.me.incarnation, connected)
        joins = not self._has_joined and roster.own in roster.ready
        self._has_joined |= joins
        if self._has_joined and (joins or chosen != self._chosen):
            self._chosen = chosen
            self._on_change([address for address, _ in chosen])


def _is_better_of_two(old: Connection, new: Connection) -> bool:
    """Two members that have not heard the same from ZooKeeper yet may dial each other at the same
    time. Both keep the same one of the two connections."""
    return (
        old.is_open
        and old.peer.incarnation == new.peer.incarnation
        and old.peer.connection < new.peer.connection
    )
