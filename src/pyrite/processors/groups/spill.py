"""Spilling: lets a grouping have more groups than fit into memory, and still emit each group once.

When memory is short, items of the groups in memory are still added to them. Items of new keys are
written to one of several files, chosen by the hash of the key. When the input has ended and the
groups in memory have been emitted, the files are read and grouped one by one, in the same way.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from pyrite.columns.packing.item_pickling import dumps
from pyrite.system.resident import resident_bytes

PARTS = 32
ITEMS_PER_WRITE = 1024
FEWEST_GROUPS = 1000
"""At least this many groups are kept in memory, so that each pass over a file makes progress."""


class Memory:
    """Compares the memory that the process has taken since this object was made with a budget in
    bytes."""

    spilled = 0
    """How many bytes were written to files because memory was short."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._before = resident_bytes()

    def is_short(self) -> bool:
        return resident_bytes() - self._before > self._budget


class Unlimited:
    """Used in place of a `Spill` by a grouping without a memory budget."""

    limit = sys.maxsize

    def add(self, key: Any, item: Any) -> None:
        raise AssertionError(
            "internal error: a grouping without a memory limit spilled an item; please report this"
        )


class Spill:
    """Takes the items of new keys when memory is short. A grouping that has `limit` groups must not
    add any more in memory."""

    def __init__(self, memory: Memory, level: int = 0) -> None:
        self.limit = sys.maxsize
        self._memory = memory
        self._level = level
        self._files: dict[int, IO[bytes]] = {}
        self._held: dict[int, list[Any]] = {}
        self._calls = 0

    def watch(self, groups: int) -> None:
        """Checks, at every 16th call, whether memory is short. It is called after each batch of
        items with the number of groups in memory."""
        self._calls += 1
        if self._calls % 16 == 0 and self.limit == sys.maxsize and self._memory.is_short():
            self.limit = max(groups, FEWEST_GROUPS)

    def add(self, key: Any, item: Any) -> None:
        part = hash((self._level, key)) % PARTS
        held = self._held.setdefault(part, [])
        held.append(item)
        if len(held) >= ITEMS_PER_WRITE:
            self._write(part)

    def parts(self) -> list[tuple[IO[bytes], int]]:
        """Returns the files that were written, each with the level for the next spill. The caller
        must close them."""
        for part in list(self._held):
            self._write(part)
        files, self._files = list(self._files.values()), {}
        return [(file, self._level + 1) for file in files]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _write(self, part: int) -> None:
        if part not in self._files:
            # The file stays open until it has been read.
            self._files[part] = tempfile.TemporaryFile(prefix="pyrite-spill-")  # noqa: SIM115
        items = self._held.pop(part)
        packed = dumps(items, items[0])
        self._files[part].write(packed)
        self._memory.spilled += len(packed)


def batches_of(file: IO[bytes]) -> Iterator[list[Any]]:
    """Reads the lists of items that were written to a file, then closes the file, which deletes
    it."""
    with file:
        file.seek(0)
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return
