"""Named maps and lists in the memory of this process."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterable
from typing import Any, overload

from pyrite.collections.named import NamedList, NamedMap
from pyrite.forks import repair_after_fork
from pyrite.keys import one_nan, with_one_nan


class MemoryCollections:
    """The maps and lists of one instance. A map or list is created when it is first used."""

    def __init__(self) -> None:
        self._maps: dict[str, MemoryMap] = {}
        self._lists: dict[str, MemoryList] = {}
        self._lock = threading.Lock()
        repair_after_fork(self)

    def map(self, name: str) -> MemoryMap:
        found = self._maps.get(name)
        if found is None:
            with self._lock:
                found = self._maps.setdefault(name, MemoryMap(name))
        return found

    def list(self, name: str) -> MemoryList:
        found = self._lists.get(name)
        if found is None:
            with self._lock:
                found = self._lists.setdefault(name, MemoryList(name))
        return found

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        for named_map in self._maps.values():
            named_map._lock = threading.Lock()
        for named_list in self._lists.values():
            named_list._lock = threading.Lock()

    def contents(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """A triple for each map and list that is not empty: `"map"` or `"list"`, the name, and the
        pairs or items."""
        maps = [
            ("map", name, builtins.list(each.items()))
            for name, each in self._maps.copy().items()
            if each
        ]
        return maps + [
            ("list", name, builtins.list(each)) for name, each in self._lists.copy().items() if each
        ]


class MemoryMap(NamedMap):
    """A named map in memory. It is thread-safe.

    Arguments are evaluated before the lock is taken, so an iterable that uses the map itself cannot
    deadlock.
    """

    __slots__ = ("_items", "_lock")

    def __init__(self, name: str) -> None:
        self.name = name
        self._items: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __getitem__(self, key: Any) -> Any:
        return self._items[one_nan(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        key = one_nan(key)
        with self._lock:
            self._items[key] = value

    def __delitem__(self, key: Any) -> None:
        key = one_nan(key)
        with self._lock:
            del self._items[key]

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return one_nan(key) in self._items

    def copy(self) -> dict[Any, Any]:
        with self._lock:
            return self._items.copy()

    def update(self, other: Any = (), /, **more: Any) -> None:
        new = with_one_nan(dict(other, **more))
        with self._lock:
            self._items.update(new)

    def pop(self, key: Any, *default: Any) -> Any:
        key = one_nan(key)
        with self._lock:
            return self._items.pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        with self._lock:
            return self._items.popitem()

    def setdefault(self, key: Any, default: Any = None) -> Any:
        key = one_nan(key)
        with self._lock:
            return self._items.setdefault(key, default)

    def clear(self) -> None:
        with self._lock:
            self._items.clear()


class MemoryList(NamedList):
    """A named list in memory. It is thread-safe."""

    __slots__ = ("_items", "_lock")

    def __init__(self, name: str) -> None:
        self.name = name
        self._items: builtins.list[Any] = []
        self._lock = threading.Lock()

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> builtins.list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            value = builtins.list(value)
        with self._lock:
            self._items[index] = value

    def __delitem__(self, index: int | slice) -> None:
        with self._lock:
            del self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def copy(self) -> builtins.list[Any]:
        with self._lock:
            return self._items.copy()

    def insert(self, index: int, value: Any) -> None:
        with self._lock:
            self._items.insert(index, value)

    def append(self, value: Any) -> None:
        with self._lock:
            self._items.append(value)

    def extend(self, values: Iterable[Any]) -> None:
        added = builtins.list(values)
        with self._lock:
            self._items.extend(added)

    def pop(self, index: int = -1) -> Any:
        with self._lock:
            return self._items.pop(index)

    def remove(self, value: Any) -> None:
        with self._lock:
            self._items.remove(value)

    def reverse(self) -> None:
        with self._lock:
            self._items.reverse()

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
