"""A named list in the folder: a row with a pickle for each item."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from pyrite.collections.named import NamedList
from pyrite.collections.stored.places import checked_index, place_of
from pyrite.collections.stored.values import packed, unpacked
from pyrite.durable.collections.access import Access
from pyrite.durable.collections.tables import (
    Added,
    id_of,
    items_of,
    made_id,
    replace_items,
    span_of,
)


class FolderList(NamedList):
    """Items come back as copies: to change one, store it again."""

    __slots__ = ("_access", "_of")

    def __init__(self, name: str, access: Access) -> None:
        self.name = name
        self._of = f"the list '{name}'"
        self._access = access

    def __getitem__(self, index: Any) -> Any:
        with self._reading() as (rows, id):
            if isinstance(index, slice):
                start, stop, step = index.indices(_count(rows, id))
                if step == 1:
                    items = items_of(rows, id, start, max(start, stop))
                else:
                    items = items_of(rows, id)[index]
            else:
                at = _within(index, _count(rows, id), "list index out of range")
                (item,) = items_of(rows, id, at, at + 1)
        return [*map(unpacked, items)] if isinstance(index, slice) else unpacked(item)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._replace(index, items_for(value))
            return
        new = packed(value)
        with self._writing() as (rows, id):
            at = _within(index, _count(rows, id), "list assignment index out of range")
            rows.execute(
                "UPDATE items SET item = ? WHERE list = ? AND place = ?",
                (new, id, span_of(rows, id)[0] + at),
            )

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            self._replace(index, None)
        else:
            self._take(index, lambda count: "list assignment index out of range")

    def __len__(self) -> int:
        with self._reading() as (rows, id):
            return _count(rows, id)

    def copy(self) -> builtins.list[Any]:
        return [*map(unpacked, self._items())]

    def insert(self, index: int, value: Any) -> None:
        at, new = checked_index(index), packed(value)
        with self._writing() as (rows, id):
            place = slice(at, None).indices(_count(rows, id))[0]
            replace_items(rows, id, place, place, [new])

    def append(self, value: Any) -> None:
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        self._access.add(Added("list", self.name, items_for(values)))

    def pop(self, index: int = -1) -> Any:
        return unpacked(
            self._take(
                index, lambda count: "pop index out of range" if count else "pop from empty list"
            )
        )

    def remove(self, value: Any) -> None:
        # Items are compared by code of the user's, so nobody must wait for it. If others change the
        # list meanwhile, it is done again.
        while True:
            seen = self._items()
            at = place_of(value, seen)
            with self._writing() as (rows, id):
                if items_of(rows, id) == seen:
                    replace_items(rows, id, at, at + 1, ())
                    return

    def reverse(self) -> None:
        with self._writing() as (rows, id):
            items = items_of(rows, id)
            replace_items(rows, id, 0, len(items), items[::-1])

    def clear(self) -> None:
        with self._writing() as (rows, id):
            replace_items(rows, id, 0, _count(rows, id), ())

    def _items(self) -> Sequence[bytes]:
        with self._reading() as (rows, id):
            return items_of(rows, id)

    def _take(self, index: Any, not_there: Callable[[int], str]) -> bytes:
        with self._writing() as (rows, id):
            count = _count(rows, id)
            at = _within(index, count, not_there(count))
            (item,) = items_of(rows, id, at, at + 1)
            replace_items(rows, id, at, at + 1, ())
        return item

    def _replace(self, index: slice, added: builtins.list[bytes] | None) -> None:
        """Assigns to a slice, or deletes it if `added` is None."""
        with self._writing() as (rows, id):
            start, stop, step = index.indices(_count(rows, id))
            if step == 1:
                replace_items(rows, id, start, max(start, stop), added or ())
                return
            items = [*items_of(rows, id)]
            count = len(items)
            if added is None:
                del items[index]
            else:
                items[index] = added  # raises ValueError if there are more or fewer of them
            replace_items(rows, id, 0, count, items)

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, int]]:
        with self._access.reading(self._of) as rows:
            yield rows, id_of(rows, "list", self.name) or 0  # no list has the id 0

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, int]]:
        with self._access.writing(self._of) as rows:
            yield rows, made_id(rows, "list", self.name)


def items_for(values: Iterable[Any]) -> builtins.list[bytes]:
    """The items for values. Raises if one cannot be stored."""
    return [packed(each) for each in values]


def _count(rows: Connection, id: int) -> int:
    first, end = span_of(rows, id)
    return end - first


def _within(index: Any, count: int, not_there: str) -> int:
    """The index from the start. Raises IndexError."""
    at = checked_index(index)
    if not -count <= at < count:
        raise IndexError(not_there)
    return at % count
