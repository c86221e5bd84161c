"""Spilling: how a grouping holds more groups than fit into memory, and still emits each exactly
once.

When memory is short, the groups that are there go on taking their items; items of any other key are
written to disk, divided by the hash of the key. When the input has ended and the groups in memory
have been emitted, what was written is grouped one part after another, in the same way.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

PARTS = 32
ITEMS_PER_WRITE = 1024
FEWEST_GROUPS = 1000
"""Groups that are kept whatever the memory, so that every part gets done in the end."""


class Memory:
    """How much memory the process has taken since a point in time, against a budget in bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._before = self._resident()

    def is_short(self) -> bool:
        return self._resident() - self._before > self._budget

    def _resident(self) -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * self._page


class Unlimited:
    """For a grouping that has all the memory it wants."""

    limit = sys.maxsize

    def add(self, key: Any, item: Any) -> None:
        raise AssertionError("there is no limit to reach")


class Spill:
    """Where items go whose groups have no place in memory. `limit` is the number of groups from
    which on that is so."""

    def __init__(self, memory: Memory, level: int = 0) -> None:
        self.limit = sys.maxsize
        self._memory = memory
        self._level = level
        self._files: dict[int, IO[bytes]] = {}
        self._held: dict[int, list[Any]] = {}
        self._calls = 0

    def watch(self, groups: int) -> None:
        """Looks, now and then, whether memory is short. Called after each batch of items, with the
        number of groups there are."""
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
        """The files that were written, each with the level at which it is to be divided again, and
        forgets them."""
        for part in list(self._held):
            self._write(part)
        files, self._files = list(self._files.values()), {}
        return [(file, self._level + 1) for file in files]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _write(self, part: int) -> None:
        if part not in self._files:
            self._files[part] = tempfile.TemporaryFile(prefix="pyrite-spill-")  # noqa: SIM115 it outlives this call
        pickle.dump(self._held.pop(part), self._files[part], 5)


def batches_of(file: IO[bytes]) -> Iterator[list[Any]]:
    """What was written to a file, a list of items at a time; the file is gone afterwards."""
    with file:
        file.seek(0)
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return
