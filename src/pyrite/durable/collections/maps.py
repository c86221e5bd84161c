"""A named map in the folder. An entry is stored under the canonical bytes of its key, as a pickle
of the key and the value. The entries are in the order in which they were added, as in a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from pyrite.collections.named import NamedMap
from pyrite.collections.stored.fields import field_of
from pyrite.collections.stored.values import packed, unpacked
from pyrite.durable.collections.access import Access
from pyrite.durable.collections.tables import Added, Row, add, entries_of, id_of, made_id
from pyrite.keys import one_nan, with_one_nan


class FolderMap(NamedMap):
    """Values come back as copies: to change one, store it again."""

    __slots__ = ("_access", "_of")

    def __init__(self, name: str, access: Access) -> None:
        self.name = name
        self._of = f"the map '{name}'"
        self._access = access

    def __getitem__(self, key: Any) -> Any:
        field = field_of(key)
        with self._reading() as (rows, id):
            entry = _entry(rows, id, field)
        if entry is None:
            raise KeyError(key)
        return unpacked(entry)[1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: Any) -> None:
        self.pop(key)

    def __len__(self) -> int:
        with self._reading() as (rows, id):
            count: int = rows.execute(
                "SELECT count(*) FROM entries WHERE map = ?", (id,)
            ).fetchone()[0]
        return count

    def __contains__(self, key: object) -> bool:
        field = field_of(key)
        with self._reading() as (rows, id):
            return _entry(rows, id, field) is not None

    def copy(self) -> dict[Any, Any]:
        with self._reading() as (rows, id):
            entries = entries_of(rows, id)
        return with_one_nan(dict(map(unpacked, entries)))

    def update(self, other: Any = (), /, **more: Any) -> None:
        self._access.add(Added("map", self.name, rows_of(dict(other, **more))))

    def pop(self, key: Any, *default: Any) -> Any:
        if len(default) > 1:
            raise TypeError(f"pop expected at most 2 arguments, got {1 + len(default)}")
        field = field_of(key)
        with self._writing() as (rows, id):
            entry = _entry(rows, id, field)
            rows.execute("DELETE FROM entries WHERE map = ? AND field = ?", (id, field))
        if entry is not None:
            return unpacked(entry)[1]
        if default:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> tuple[Any, Any]:
        """Any entry."""
        with self._writing() as (rows, id):
            found = rows.execute(
                "SELECT number, entry FROM entries WHERE map = ? LIMIT 1", (id,)
            ).fetchone()
            if found is None:
                raise KeyError(f"the map '{self.name}' is empty")
            rows.execute("DELETE FROM entries WHERE number = ?", found[:1])
        key, value = unpacked(found[1])
        return one_nan(key), value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        new = rows_of({key: default})
        with self._writing() as (rows, id):
            entry = _entry(rows, id, new[0][0])
            if entry is None:
                add(rows, Added("map", self.name, new))
        return default if entry is None else unpacked(entry)[1]

    def clear(self) -> None:
        with self._writing() as (rows, id):
            rows.execute("DELETE FROM entries WHERE map = ?", (id,))

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, int]]:
        with self._access.reading(self._of) as rows:
            yield rows, id_of(rows, "map", self.name) or 0  # no map has the id 0

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, int]]:
        with self._access.writing(self._of) as rows:
            yield rows, made_id(rows, "map", self.name)


def rows_of(pairs: Mapping[Any, Any]) -> list[Row]:
    """The rows for the entries of a map. Raises if a key or a value cannot be stored."""
    return [(field_of(pair[0]), packed(pair)) for pair in pairs.items()]


def _entry(rows: Connection, id: int, field: bytes) -> bytes | None:
    found = rows.execute(
        "SELECT entry FROM entries WHERE map = ? AND field = ?", (id, field)
    ).fetchone()
    return None if found is None else found[0]
