"""The tables of the file, and what is read and written within a transaction.

The items of a list have places without gaps. The first place may be any number, so that items can
be added and removed at both ends without moving the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from sqlite3 import Connection
from typing import Any, Final, NamedTuple, TypeAlias

from pyrite.context import CollectionKind

Row: TypeAlias = tuple[bytes, bytes]
"""The field and the pickle of an entry of a map."""

SCHEMA: Final = """
CREATE TABLE names (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name BLOB NOT NULL, UNIQUE (kind, name)
);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, map INTEGER NOT NULL, field BLOB NOT NULL, entry BLOB NOT NULL,
    UNIQUE (map, field)
);
CREATE TABLE items (
    list INTEGER NOT NULL, place INTEGER NOT NULL, item BLOB NOT NULL, PRIMARY KEY (list, place)
) WITHOUT ROWID;
CREATE TABLE applied (job TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE attempts (id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL);
CREATE TABLE staged (
    attempt INTEGER, target INTEGER, number INTEGER, field BLOB, value BLOB NOT NULL,
    PRIMARY KEY (attempt, target, number)
) WITHOUT ROWID
"""


class Added(NamedTuple):
    """Rows of a map, or items of a list, that are to be added to it."""

    kind: CollectionKind
    name: str
    data: Sequence[Any]

    @property
    def of(self) -> str:
        return f"the {self.kind} '{self.name}'"


def add(rows: Connection, added: Added) -> None:
    id = made_id(rows, added.kind, added.name)
    if added.kind == "map":
        _put_entries(rows, id, added.data)
    else:
        _insert(rows, id, span_of(rows, id)[1], added.data)


def move(rows: Connection, attempt: int, target: int, kind: CollectionKind, name: str) -> None:
    """Adds the rows that an attempt has staged for a map or list; `target` is their number."""
    id, staged = made_id(rows, kind, name), "FROM staged WHERE attempt = ? AND target = ?"
    if kind == "map":
        rows.execute(
            f"INSERT INTO entries (map, field, entry) SELECT ?, field, value {staged}"
            " ORDER BY number ON CONFLICT (map, field) DO UPDATE SET entry = excluded.entry",
            (id, attempt, target),
        )
    else:
        rows.execute(
            f"INSERT INTO items SELECT ?, ? + number, value {staged} ORDER BY number",
            (id, span_of(rows, id)[1], attempt, target),
        )


def id_of(rows: Connection, kind: CollectionKind, name: str) -> int | None:
    found = rows.execute(
        "SELECT id FROM names WHERE kind = ? AND name = ?", (kind, _as_bytes(name))
    ).fetchone()
    return None if found is None else found[0]


def made_id(rows: Connection, kind: CollectionKind, name: str) -> int:
    found = id_of(rows, kind, name)
    if found is None:
        row = (kind, _as_bytes(name))
        found = rows.execute("INSERT INTO names (kind, name) VALUES (?, ?)", row).lastrowid
        assert found is not None
    return found


def names_of(rows: Connection, kind: CollectionKind) -> list[tuple[int, str]]:
    found = rows.execute("SELECT id, name FROM names WHERE kind = ? ORDER BY id", (kind,))
    return [(id, name.decode("utf-8", "surrogatepass")) for id, name in found]


def _put_entries(rows: Connection, map: int, entries: Iterable[Row]) -> None:
    """An entry that is there keeps its number, and so its place in the order."""
    rows.executemany(
        "INSERT INTO entries (map, field, entry) VALUES (?, ?, ?)"
        " ON CONFLICT (map, field) DO UPDATE SET entry = excluded.entry",
        ((map, field, entry) for field, entry in entries),
    )


def entries_of(rows: Connection, map: int) -> Iterator[bytes]:
    found = rows.execute("SELECT entry FROM entries WHERE map = ? ORDER BY number", (map,))
    return iter([entry for (entry,) in found.fetchall()])


def span_of(rows: Connection, list: int) -> tuple[int, int]:
    """The first place of a list, and the one after its last."""
    first, last = rows.execute(
        "SELECT (SELECT place FROM items WHERE list = ?1 ORDER BY place LIMIT 1),"
        " (SELECT place FROM items WHERE list = ?1 ORDER BY place DESC LIMIT 1)",
        (list,),
    ).fetchone()
    return (0, 0) if first is None else (first, last + 1)


def items_of(
    rows: Connection, list: int, start: int = 0, stop: int | None = None
) -> Sequence[bytes]:
    """The items from one index up to another. Both must be within the list."""
    first, end = span_of(rows, list)
    found = rows.execute(
        "SELECT item FROM items WHERE list = ? AND place >= ? AND place < ? ORDER BY place",
        (list, first + start, end if stop is None else first + stop),
    )
    return [item for (item,) in found.fetchall()]


def replace_items(
    rows: Connection, list: int, start: int, stop: int, items: Sequence[bytes]
) -> None:
    """Replaces the items from one index up to another by others, of which there may be more or
    fewer."""
    first, end = span_of(rows, list)
    if start == 0:  # the items after `stop` stay where they are
        _delete(rows, list, first, first + stop)
        _insert(rows, list, first + stop - len(items), items)
    else:
        after = items_of(rows, list, stop) if first + stop < end else ()
        _delete(rows, list, first + start, end)
        _insert(rows, list, first + start, [*items, *after])


def _delete(rows: Connection, list: int, start: int, end: int) -> None:
    rows.execute(
        "DELETE FROM items WHERE list = ? AND place >= ? AND place < ?", (list, start, end)
    )


def _insert(rows: Connection, list: int, place: int, items: Sequence[bytes]) -> None:
    rows.executemany(
        "INSERT INTO items (list, place, item) VALUES (?, ?, ?)",
        zip(repeat(list), count(place), items),
    )


def _as_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")  # a name may have half of a surrogate pair
