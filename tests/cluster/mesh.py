"""Members in this process, joined by their real links, but with lists in the place of sockets."""

from __future__ import annotations

import time

from pyrite.cluster.edges.links import MemberLinks
from pyrite.cluster.edges.receiving import Arrivals
from pyrite.engine.failure import Halt
from pyrite.engine.plan import Topology
from pyrite.wire.messages import DoneMessage, Message, PacketMessage, decode, encode

EXECUTION = b"01234567"


class Straight:
    """A connection that delivers at once, and counts."""

    def __init__(self, sender: int, arrivals: Arrivals) -> None:
        self._sender = str(sender)
        self._arrivals = arrivals
        self.sent: list[Message] = []
        self.unsent = 0

    def send(self, message: Message) -> None:
        message = decode(encode(message))
        self.sent.append(message)
        if isinstance(message, PacketMessage):
            self._arrivals.packet(self._sender, message)
        elif isinstance(message, DoneMessage):
            self._arrivals.done(self._sender, message.edge)


class Mesh:
    def __init__(self, topology: Topology, halt: Halt) -> None:
        numbers = range(topology.member_count)
        self.arrivals = [Arrivals() for _ in numbers]
        self.connections = {
            (a, b): Straight(a, self.arrivals[b]) for a in numbers for b in numbers if a != b
        }
        self.links = [
            MemberLinks(
                EXECUTION,
                topology,
                {b: self.connections[a, b] for b in numbers if a != b},
                self.arrivals[a],
                halt,
            )
            for a in numbers
        ]

    def ack(self) -> None:
        """What members do every now and then."""
        now = time.monotonic_ns()
        for member, arrivals in enumerate(self.arrivals):
            for sender, limits in arrivals.acks(now).items():
                for edge, limit in limits:
                    self.links[int(sender)].acked(member, edge, limit)
