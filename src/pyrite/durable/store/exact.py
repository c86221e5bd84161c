"""What ZooKeeper has to do for the writes of a transaction. It refuses a transaction as a whole if
a node to create is there, or if one to set or delete is not; so this depends on what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.store.limits import encoded, parent_of

MOST_BYTES: Final = 1_020_000
"""Of a transaction. ZooKeeper takes 1,048,575 and adds to it when it passes it on."""
BYTES_MORE: Final = 150
"""What an operation needs besides its path and data: mostly its access list."""


class Operation(NamedTuple):
    kind: Literal["create", "set", "delete"]
    path: str
    data: bytes = b""


def exact(writes: Sequence[Write], there: Iterable[str]) -> list[Operation]:
    """The operations that do the writes, if just these nodes are there. `there` must say so for all
    paths of writes, all above them, and all below those that are deleted.

    >>> writes = [Create("/ack/1"), Create("/ack/2"), Put("/job/j", "x"), Delete("/task/j")]
    >>> for operation in exact(writes, ["/ack", "/ack/1", "/task", "/task/j", "/task/j/a-0"]):
    ...     print(operation.kind, operation.path)
    create /ack/2
    create /job
    create /job/j
    delete /task/j/a-0
    delete /task/j
    """
    present = {"/", *there}
    return [operation for write in writes for operation in _operations(write, present)]


def size(operations: Iterable[Operation]) -> int:
    return sum(len(o.path.encode()) + len(o.data) + BYTES_MORE for o in operations)


def ahead(writes: Sequence[Write], operations: Sequence[Operation]) -> list[Operation]:
    """If there is too much for one transaction: deletions that can be done before it, as many as
    fit into one. They are of nodes below those that are deleted. Empty if there are none."""
    others = {write.path for write in writes}
    spare = [o for o in operations if o.kind == "delete" and o.path not in others]
    total, count = 0, 0
    while count < len(spare) and (total := total + size(spare[count : count + 1])) <= MOST_BYTES:
        count += 1
    return spare[:count]


def _operations(write: Write, present: set[str]) -> Iterator[Operation]:
    match write:
        case Create(path, data) | Put(path, data):
            if path not in present:
                yield from _created(path, encoded(path, data), present)
            elif isinstance(write, Put):
                yield Operation("set", path, encoded(path, data))
        case Delete(path):
            below = f"{path}/"
            gone = [p for p in present if p == path or p.startswith(below)]
            present.difference_update(gone)
            # Reversed, whatever is below a node comes before it.
            yield from (Operation("delete", each) for each in sorted(gone, reverse=True))
        case CloseQueues():
            pass


def _created(path: str, data: bytes, present: set[str]) -> Iterator[Operation]:
    if parent_of(path) not in present:
        yield from _created(parent_of(path), b"", present)
    present.add(path)
    yield Operation("create", path, data)
