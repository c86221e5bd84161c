"""What ZooKeeper has to do for the writes of a transaction. It refuses a transaction as a whole if
a node to create is there, or if one to set or delete is not; so this depends on what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.store.limits import encoded, line_of, parent_of

MOST_BYTES: Final = 1_020_000
"""Of a transaction. ZooKeeper takes 1,048,575 and adds to it when it passes it on."""
BYTES_MORE: Final = 150
"""What an operation needs besides its path and data: mostly its access list."""


class Operation(NamedTuple):
    """`check` is that a node is there."""

    kind: Literal["check", "create", "set", "delete"]
    path: str
    data: bytes = b""


class Tree:
    """The paths of nodes that are thought to be there."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._below: dict[str, set[str]] = {}
        for path in paths:
            self.add(path)

    def __contains__(self, path: str) -> bool:
        return path == "/" or path in self._below.get(parent_of(path), ())

    def add(self, path: str) -> None:
        self._below.setdefault(parent_of(path), set()).add(path)

    def remove(self, path: str) -> list[str]:
        """Removes a node with all below it, and tells which, the lowest first."""
        if path not in self:
            return []
        self._below[parent_of(path)].discard(path)
        removed, next_ones = [path], [path]
        while next_ones:
            below = self._below.pop(next_ones.pop(), ())
            removed += below
            next_ones += below
        return sorted(removed, reverse=True)


def exact(writes: Sequence[Write], tree: Tree) -> list[Operation]:
    """The operations that do the writes, if the nodes of the tree are there, and no others of those
    to create. If that is not so, ZooKeeper refuses them. Only of a node to delete that is not in
    the tree one must know that it is not there. The tree changes as the nodes will.

    >>> writes = [Create("/ack/1"), Create("/ack/2"), Put("/job/j", "x"), Delete("/task/j")]
    >>> tree = Tree(["/ack", "/ack/1", "/task", "/task/j", "/task/j/a-0"])
    >>> for operation in exact(writes, tree):
    ...     print(operation.kind, operation.path)
    check /ack/1
    create /ack/2
    create /job
    create /job/j
    delete /task/j/a-0
    delete /task/j
    >>> "/job/j" in tree, "/task/j/a-0" in tree
    (True, False)
    """
    return [operation for write in writes for operation in _operations(write, tree)]


def size(operations: Iterable[Operation]) -> int:
    return sum(len(o.path.encode()) + len(o.data) + BYTES_MORE for o in operations)


def ahead(
    writes: Sequence[Write], operations: Sequence[Operation], most: int = MOST_BYTES
) -> list[Operation]:
    """If there is too much for one transaction: deletions that can be done before it, as many as
    fit into one. They are of nodes below those that are deleted, and that no other write needs.
    Empty if there are none."""
    needed = {path for write in writes for path in line_of(write.path)}
    needed.update(o.path for o in operations if o.kind == "create")
    spare = [o for o in operations if o.kind == "delete" and o.path not in needed]
    total, count = 0, 0
    while count < len(spare) and (total := total + size(spare[count : count + 1])) <= most:
        count += 1
    return spare[:count]


def _operations(write: Write, tree: Tree) -> Iterator[Operation]:
    match write:
        case Create(path, data) | Put(path, data):
            if path not in tree:
                yield from _created(path, encoded(path, data), tree)
            elif isinstance(write, Put):
                yield Operation("set", path, encoded(path, data))
            else:
                yield Operation("check", path)
        case Delete(path):
            yield from (Operation("delete", each) for each in tree.remove(path))
        case CloseQueues():
            pass


def _created(path: str, data: bytes, tree: Tree) -> Iterator[Operation]:
    if parent_of(path) not in tree:
        yield from _created(parent_of(path), b"", tree)
    tree.add(path)
    yield Operation("create", path, data)
