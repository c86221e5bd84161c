"""Who is a member, as ZooKeeper tells it: in which order, whom to dial, and who may serve. Pure.

A member has a node with a sequence number. Members are numbered from the newest node to the oldest,
and the lower-numbered dials: so a member that joins connects to all that were there before it, and
knows when it has. Then it is *ready*. Of two members that are ready, the newer was connected to the
older, so an execution can use both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Incarnations = tuple[tuple[str, str], ...]
"""The address and the incarnation of members, in the order of their numbers."""


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A node in ZooKeeper. Its name says all there is to know, so that a list of names is enough.

    >>> Node(7, "10.0.0.1:5701", "c0ffee").name
    'c0ffee@10.0.0.1:5701-0000000007'
    """

    number: int
    """ZooKeeper counts: a node that was made later has a higher number."""
    address: str
    incarnation: str

    @property
    def name(self) -> str:
        return f"{prefix(self.address, self.incarnation)}{self.number:010}"

    @staticmethod
    def parsed(name: str) -> Node | None:
        """None if this is the name of something else."""
        rest, _, number = name.rpartition("-")
        incarnation, _, address = rest.partition("@")
        if not (incarnation and address and number.isdecimal()):
            return None
        return Node(int(number), address, incarnation)


def prefix(address: str, incarnation: str) -> str:
    """The name of a node without its number, which ZooKeeper adds."""
    return f"{incarnation}@{address}-"


def parsed(names: Iterable[str]) -> list[Node]:
    return [node for name in names if (node := Node.parsed(name)) is not None]


@dataclass(frozen=True, slots=True)
class Roster:
    """What ZooKeeper said when it was asked last."""

    own: Node | None = None
    """The node of this member; None while it has none."""
    nodes: tuple[Node, ...] = ()
    """Of each address the newest; an older one is of a process that is gone. Newest first."""
    ready: frozenset[Node] = frozenset()

    @staticmethod
    def of(own: Node | None, registered: Iterable[Node], ready: Iterable[Node]) -> Roster:
        newest = {node.address: node for node in sorted(registered)}
        nodes = tuple(sorted(newest.values(), reverse=True))
        return Roster(own, nodes, frozenset(ready).intersection(nodes))

    @property
    def before(self) -> tuple[Node, ...]:
        """The other members whose nodes are older than the own: those to dial."""
        own = self.own
        if own is None:
            return ()
        return tuple(node for node in self.nodes if node < own and node.address != own.address)

    def missing(self, connected: Mapping[str, str]) -> tuple[Node, ...]:
        """Those of them that this member must still be connected to before it is ready.
        `connected` has the incarnations of connected members by their addresses; where another
        incarnation answers, the one in the node is gone."""
        return tuple(node for node in self.before if node.address not in connected)

    def chosen(self, address: str, incarnation: str, connected: Mapping[str, str]) -> Incarnations:
        """The members of a new execution that the member at this address coordinates: itself, and
        those that are ready and connected to it."""
        others = [
            node
            for node in self.nodes
            if node.address != address
            and node in self.ready
            and connected.get(node.address) == node.incarnation
        ]
        me = Node(self.own.number if self.own else 0, address, incarnation)
        order = sorted([me, *others], reverse=True)
        return tuple((node.address, node.incarnation) for node in order)
