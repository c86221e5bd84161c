"""What the coordinator does to the store. Each write can be repeated: the second time changes
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """Creates a node, unless it is there: what a peer has set since stays as it is."""

    path: str
    data: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """Creates a node or sets its data."""

    path: str
    data: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes a node with all below it. It is no error if it is not there."""

    path: str


@dataclass(frozen=True, slots=True)
class CloseQueues:
    """Deletes the queues, records and markers of a job that has ended. They may be on other servers
    than the store, so this is not part of a transaction."""

    job: str

    @property
    def path(self) -> str:
        return f"/queues/{self.job}"


Write = Create | Put | Delete | CloseQueues

_KINDS = {"create": Create, "put": Put, "delete": Delete, "close": CloseQueues}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def pack(writes: Sequence[Write]) -> list[list[str]]:
    """The writes as plain lists, for the log."""
    return [
        [_NAMES[type(write)], *(getattr(write, name) for name in write.__dataclass_fields__)]
        for write in writes
    ]


def unpack(rows: Sequence[Sequence[str]]) -> tuple[Write, ...]:
    """
    >>> import json
    >>> writes = (Create("/ack/1"), Put("/job/j", "[1]"), Delete("/plan/j"), CloseQueues("j"))
    >>> unpack(json.loads(json.dumps(pack(writes)))) == writes
    True
    """
    return tuple(_KINDS[kind](*values) for kind, *values in rows)
