"""A store in memory: nodes by path, and transactions that check the epoch of the leader."""

from __future__ import annotations

from collections.abc import Iterable

from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write


class Fenced(Exception):
    """Another leader has raised the epoch."""


def apply(nodes: dict[str, str], write: Write) -> None:
    match write:
        case Create(path, data):
            nodes.setdefault(path, data)
        case Put(path, data):
            nodes[path] = data
        case Delete(path):
            nodes.pop(path, None)
            if path.startswith(("/task/", "/peer-state/", "/live/")):  # these have nodes below
                for other in [other for other in nodes if other.startswith(f"{path}/")]:
                    del nodes[other]
        case CloseQueues():
            pass


class MemoryStore:
    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.epoch = 0

    def transact(self, epoch: int, writes: Iterable[Write]) -> None:
        if epoch != self.epoch:
            raise Fenced
        for write in writes:
            apply(self.nodes, write)

    def set(self, path: str, data: str) -> bool:
        """What a peer does: it sets only what is there."""
        if path in self.nodes:
            self.nodes[path] = data
        return path in self.nodes
