"""The receiving end of distributed edges: what has arrived for one execution, and how much more its
senders may send.

One thread adds what arrives, also before the execution is initialized; the tasklets take it, and
another thread may prepare them meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pyrite.cluster.edges.window import ReceiveWindow
from pyrite.engine.ends import Packet
from pyrite.engine.queues import DONE, Done
from pyrite.exchange.groups import unpacked
from pyrite.wire.messages import PacketMessage, Payload

DEFAULT_MULTIPLIER = 3


class Arrivals:
    """What has arrived for one execution, by edge."""

    __slots__ = ("_edges",)

    def __init__(self) -> None:
        self._edges: dict[int, EdgeArrivals] = {}

    def edge(self, edge: int) -> EdgeArrivals:
        found = self._edges.get(edge)
        if found is None:  # set once: another thread may make it in the same moment
            found = self._edges.setdefault(edge, EdgeArrivals())
        return found

    def packet(self, sender: str, message: PacketMessage) -> bool:
        """Adds a packet. Returns whether its sender now waits for the first ack."""
        return self.edge(message.edge).packet(sender, message.weight, message.items)

    def done(self, sender: str, edge: int) -> None:
        """Adds a sender's done marker."""
        self.edge(edge).done_senders.add(sender)

    def came_from(self, sender: str) -> bool:
        """Whether anything has arrived from a sender."""
        return any(
            sender in edge.windows or sender in edge.done_senders
            for edge in list(self._edges.values())
        )

    def acks(self, now: int, *, first: bool = False) -> dict[str, list[tuple[int, int]]]:
        """By sender, the edges and limits to send to it. With `first`, only those that wait for
        their first ack."""
        by_sender: dict[str, list[tuple[int, int]]] = {}
        for edge, arrivals in list(self._edges.items()):
            for sender, window in list(arrivals.windows.items()):
                limit = window.ack(now) if not first or window.waits_for_first_ack else None
                if limit is not None:
                    by_sender.setdefault(sender, []).append((edge, limit))
        return by_sender

    @property
    def held(self) -> int:
        """The weight of all packets that have arrived and are not accepted yet."""
        return sum(window.held for edge in self._edges.values() for window in edge.windows.values())


class EdgeArrivals:
    """What has arrived on one edge, with a window for each sender."""

    __slots__ = ("done_senders", "multiplier", "packets", "windows")

    def __init__(self) -> None:
        self.packets: deque[tuple[ReceiveWindow, int, Payload]] = deque()
        self.windows: dict[str, ReceiveWindow] = {}
        self.done_senders: set[str] = set()
        self.multiplier = DEFAULT_MULTIPLIER

    def packet(self, sender: str, weight: int, items: Payload) -> bool:
        window = self.windows.get(sender)
        if window is None:
            window = self.windows[sender] = ReceiveWindow(self.multiplier)
            window.multiplier = self.multiplier  # another thread may have set it meanwhile
        window.received(weight)
        self.packets.append((window, weight, items))
        return window.waits_for_first_ack

    def use_multiplier(self, multiplier: int) -> None:
        """Sets the multiplier from the edge's settings, which are known since the init."""
        self.multiplier = multiplier
        for window in list(self.windows.values()):  # packets arrive meanwhile
            window.multiplier = multiplier


class MemberInlet:
    """The packets of one edge. A packet is accepted when the next one is polled: then the
    processors have its items."""

    __slots__ = ("_arrivals", "_groups", "_handed", "_senders")

    def __init__(self, arrivals: EdgeArrivals, *, senders: int) -> None:
        self._arrivals = arrivals
        self._senders = senders
        self._groups: Iterator[Packet] = iter(())
        self._handed: tuple[ReceiveWindow, int] | None = None

    def poll(self) -> Packet | Done | None:
        packet = next(self._groups, None)
        if packet is not None:
            return packet
        if self._handed is not None:
            window, weight = self._handed
            window.accepted(weight)
            self._handed = None
        arrivals = self._arrivals
        # Checked before the queue is read: packets arrive before their done marker.
        all_done = len(arrivals.done_senders) == self._senders
        if arrivals.packets:
            window, weight, items = arrivals.packets.popleft()
            self._handed = window, weight
            self._groups = unpacked(items)
            return self.poll()
        return DONE if all_done else None
