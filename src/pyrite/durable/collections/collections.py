"""The maps and lists of a folder. What a completed job adds changes them in one step, and once."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyrite.collections.stored.values import unpacked
from pyrite.durable.collections import applying
from pyrite.durable.collections.access import Access, FileAccess
from pyrite.durable.collections.behind import BehindAccess, Line
from pyrite.durable.collections.lists import FolderList, items_for
from pyrite.durable.collections.maps import FolderMap, rows_of
from pyrite.durable.collections.tables import Added, entries_of, items_of, names_of
from pyrite.durable.folder.database import PATIENCE
from pyrite.durable.folder.layout import collections_file
from pyrite.exchange.collected import Collected
from pyrite.keys import one_nan


class _Named:
    def __init__(self, access: Access) -> None:
        self._access = access

    def map(self, name: str) -> FolderMap:
        return FolderMap(name, self._access)

    def list(self, name: str) -> FolderList:
        return FolderList(name, self._access)

    def contents(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """A triple for each map and list that is not empty: `"map"` or `"list"`, the name, and the
        pairs or items. All as they were at one moment."""
        with self._access.reading("the maps and lists") as rows:
            maps = [(name, entries_of(rows, id)) for id, name in names_of(rows, "map")]
            lists = [(name, items_of(rows, id)) for id, name in names_of(rows, "list")]
        found: builtins.list[tuple[str, str, builtins.list[Any]]] = []
        for name, entries in maps:
            pairs = map(unpacked, entries)
            found.append(("map", name, [(one_nan(key), value) for key, value in pairs]))
        found += [("list", name, [*map(unpacked, items)]) for name, items in lists]
        return [each for each in found if each[2]]


class FolderCollections(_Named):
    """They outlive every process, and all who use the same folder share them. Thread-safe. The file
    is opened when it is first used."""

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self._file = FileAccess(collections_file(folder), patience=patience)
        self._line = Line(self._file)
        super().__init__(self._file)

    def for_execution(self) -> ExecutionCollections:
        """The same maps and lists, as the processors of one execution use them."""
        return ExecutionCollections(BehindAccess(self._file, self._line))

    def apply(self, job: str, collected: Iterable[Collected]) -> bool:
        """Adds all that a completed job has collected, in one step. False if that was done before:
        then it changes nothing."""
        return applying.apply(self._file, job, map(_added, collected))

    def forget(self, job: str) -> None:
        """Removes the mark that a job was applied. Its completion must not be repeated after
        that."""
        applying.forget(self._file, job)

    def close(self) -> None:
        """Closes the file, until it is used again."""
        self._line.close()
        self._file.close()


def _added(collected: Collected) -> Added:
    of_kind = rows_of if collected.kind == "map" else items_for
    return Added(collected.kind, collected.name, of_kind(collected.contents))


class ExecutionCollections(_Named):
    """Additions do not wait for the file; `flush` waits for all of them."""

    def __init__(self, access: BehindAccess) -> None:
        super().__init__(access)
        self.flush = access.flush
