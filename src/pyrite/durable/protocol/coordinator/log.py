"""The log of the coordinator. An entry is written first, then its writes are done, then the
checkpoint moves past it. A new leader repeats the writes of all entries after the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import Create, Put, Write, pack, unpack

MOST_WRITES: Final = 500
MOST_CHARACTERS: Final = 200_000
"""Of an entry that is done in one transaction. The transaction has the text of the entry and its
writes, and ZooKeeper takes no more than 1 MB."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event and all the writes that it decided, each node once. They are done in their order: a
    peer that sees its payload finds the nodes for its requests."""

    number: int
    event: tuple[str | int, ...]
    writes: tuple[Write, ...]

    @property
    def path(self) -> str:
        return paths.log_entry(str(self.event[0]), self.number)

    def text(self) -> str:
        values = [self.number, self.event, pack(self.writes)]
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Entry:
        number, event, rows = json.loads(text)
        return cls(number, tuple(event), unpack(rows))


def transactions(entry: Entry, *, most: int = MOST_WRITES) -> Iterator[tuple[Write, ...]]:
    """What a leader does for an entry, as transactions of at most so many writes. Each must check
    the epoch of the leader, and each may be the last that this leader does."""
    yield (Create(entry.path, entry.text()),)
    yield from repeated(entry, most=most)


def steps(entry: Entry, *, most: int = MOST_WRITES) -> Iterator[tuple[Write, ...]]:
    """The same, all in one transaction if the entry is small: then either nothing is done or all,
    and there is nothing to repeat."""
    text = entry.text()
    if len(entry.writes) + 2 > most or len(text) > MOST_CHARACTERS:
        yield from transactions(entry, most=most)
    else:
        checkpoint = Put(paths.CHECKPOINT, str(entry.number))
        yield (Create(entry.path, text), *entry.writes, checkpoint)


def repeated(entry: Entry, *, most: int = MOST_WRITES) -> Iterator[tuple[Write, ...]]:
    """What a new leader does for an entry that it finds after the checkpoint."""
    for start in range(0, len(entry.writes), most):
        yield entry.writes[start : start + most]
    yield (Put(paths.CHECKPOINT, str(entry.number)),)


def after(checkpoint: int, entries: Iterable[Entry]) -> list[Entry]:
    """The entries to replay, in their order."""
    return sorted((e for e in entries if e.number > checkpoint), key=lambda entry: entry.number)
