"""Named maps and lists in the memory of the members.

An entry of a map lives on the member that owns the partition of its key, so that a sink behind an
edge that is partitioned by the same key writes where it is; a list lives on the member that owns
the partition of its name. Each call is one step there, as with a map or list in memory.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, MutableMapping, MutableSequence, Sequence
from functools import partial
from typing import Any, Final, Protocol

from pyrite.collections import MemoryCollections
from pyrite.collections.named import NamedList, NamedMap
from pyrite.context import CollectionKind, Collections
from pyrite.errors import PyriteError
from pyrite.partitioning import InvalidKey, default_partition_count, partition_id

Request = tuple[str, str, str, tuple[Any, ...]]
"""`map` or `list`, its name, a method of it, and the arguments."""
Ask = Callable[[Request], Any]

MAP_METHODS: Final = frozenset(
    ("__getitem__", "__setitem__", "__delitem__", "__len__", "__contains__", "copy", "update")
) | {"pop", "popitem", "setdefault", "clear"}
LIST_METHODS: Final = frozenset(
    ("__getitem__", "__setitem__", "__delitem__", "__len__", "__contains__", "copy", "insert")
) | {"append", "extend", "pop", "remove", "reverse", "clear", "index", "count"}


class SharedCollections(Collections, Protocol):
    """Named maps and lists that several members read together."""

    def share(self, kind: CollectionKind, name: str, index: int, count: int) -> Sequence[Any]:
        """The pairs or items that one of `count` members reads. All members together read each
        entry or item once, whoever writes meanwhile."""


def served(collections: Collections, request: Request) -> Any:
    """Does what a request asks for."""
    kind, name, method, arguments = request
    if kind == "map" and method in MAP_METHODS:
        return getattr(collections.map(name), method)(*arguments)
    if kind == "list" and method in LIST_METHODS:
        return getattr(collections.list(name), method)(*arguments)
    raise PyriteError(f"a {kind} cannot be asked for {method}")


class RemoteMap(NamedMap):
    """A map that is elsewhere: each call goes there, and is one step. What gives no answer goes by
    `tell`, which may not wait until it is done; what comes later still finds it done."""

    def __init__(self, name: str, ask: Ask, tell: Ask | None = None) -> None:
        self.name = name
        self._ask = ask
        self._tell = tell or ask

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._ask(("map", self.name, method, arguments))

    def __getitem__(self, key: Any) -> Any:
        return self._call("__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: Any) -> None:
        self._call("__delitem__", key)

    def __len__(self) -> int:
        count: int = self._call("__len__")
        return count

    def __contains__(self, key: object) -> bool:
        contained: bool = self._call("__contains__", key)
        return contained

    def copy(self) -> dict[Any, Any]:
        copied: dict[Any, Any] = self._call("copy")
        return copied

    def update(self, other: Any = (), /, **more: Any) -> None:
        self._tell(("map", self.name, "update", (dict(other, **more),)))

    def pop(self, key: Any, *default: Any) -> Any:
        return self._call("pop", key, *default)

    def popitem(self) -> tuple[Any, Any]:
        pair: tuple[Any, Any] = self._call("popitem")
        return pair

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self._call("setdefault", key, default)

    def clear(self) -> None:
        self._call("clear")


class PartitionedMap(RemoteMap):
    """A map whose entries live on several members, by the partitions of their keys."""

    def __init__(self, name: str, parts: Sequence[MutableMapping[Any, Any]]) -> None:
        self.name = name
        self._parts = parts

    def _part(self, key: Any) -> MutableMapping[Any, Any]:
        return self._parts[owner_of(key, len(self._parts))]

    def _call(self, method: str, *arguments: Any) -> Any:
        """Of the methods that have a key, on the part where it belongs."""
        return getattr(self._part(arguments[0]), method)(*arguments)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def copy(self) -> dict[Any, Any]:
        copied: dict[Any, Any] = {}
        for part in self._parts:
            copied.update(part.items())
        return copied

    def update(self, other: Any = (), /, **more: Any) -> None:
        pairs = dict(other, **more)
        by_owner: dict[int, dict[Any, Any]] = {}
        for key, value in pairs.items():
            by_owner.setdefault(owner_of(key, len(self._parts)), {})[key] = value
        for owner, own in by_owner.items():
            self._parts[owner].update(own)

    def popitem(self) -> tuple[Any, Any]:
        for part in self._parts:
            try:
                return part.popitem()
            except KeyError:
                continue
        raise KeyError(f"the map '{self.name}' is empty")

    def clear(self) -> None:
        for part in self._parts:
            part.clear()


class RemoteList(NamedList):
    """A list that is elsewhere: each call goes there, and is one step; `tell` as with a map."""

    def __init__(self, name: str, ask: Ask, tell: Ask | None = None) -> None:
        self.name = name
        self._ask = ask
        self._tell = tell or ask

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._ask(("list", self.name, method, arguments))

    def __getitem__(self, index: Any) -> Any:
        return self._call("__getitem__", index)

    def __setitem__(self, index: Any, value: Any) -> None:
        value = builtins.list(value) if isinstance(index, slice) else value
        self._call("__setitem__", index, value)

    def __delitem__(self, index: Any) -> None:
        self._call("__delitem__", index)

    def __len__(self) -> int:
        count: int = self._call("__len__")
        return count

    def __contains__(self, value: object) -> bool:
        contained: bool = self._call("__contains__", value)
        return contained

    def copy(self) -> builtins.list[Any]:
        copied: builtins.list[Any] = self._call("copy")
        return copied

    def insert(self, index: int, value: Any) -> None:
        self._call("insert", index, value)

    def append(self, value: Any) -> None:
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        self._tell(("list", self.name, "extend", (builtins.list(values),)))

    def pop(self, index: int = -1) -> Any:
        return self._call("pop", index)

    def remove(self, value: Any) -> None:
        self._call("remove", value)

    def reverse(self) -> None:
        self._call("reverse")

    def clear(self) -> None:
        self._call("clear")


class MemberCollections:
    """The maps and lists of a cluster, as a member sees them: what lives here is used as it is.
    `check` raises if a part of one is gone."""

    def __init__(
        self,
        here: MemoryCollections,
        address: Callable[[], str],
        addresses: Callable[[], Sequence[str]],
        call: Callable[[str, Request], Any],
        tell: Callable[[str, Request], Any],
        check: Callable[[str, str], None],
    ) -> None:
        self._tell = tell
        self._check = check
        self._here = here
        self._address = address
        self._addresses = addresses
        self._call = call

    def map(self, name: str) -> MutableMapping[Any, Any]:
        self._check("map", name)
        here, parts = self._address(), builtins.list[MutableMapping[Any, Any]]()
        for address in self._addresses():
            if address == here:
                parts.append(self._here.map(name))
            else:
                parts.append(
                    RemoteMap(name, partial(self._call, address), partial(self._tell, address))
                )
        return parts[0] if len(parts) == 1 else PartitionedMap(name, parts)

    def list(self, name: str) -> MutableSequence[Any]:
        self._check("list", name)
        addresses = self._addresses()
        owner = addresses[owner_of(name, len(addresses))]
        if owner == self._address():
            return self._here.list(name)
        return RemoteList(name, partial(self._call, owner), partial(self._tell, owner))

    def share(self, kind: CollectionKind, name: str, index: int, count: int) -> Sequence[Any]:
        """What lives here."""
        self._check(kind, name)
        if kind == "map":
            return builtins.list(self._here.map(name).items())
        return self._here.list(name).copy()


def owner_of(key: Any, members: int) -> int:
    """The number of the member that a key belongs to: the same that has its partition on a
    distributed edge. What can be no partition key belongs to the first."""
    try:
        return partition_id(key, default_partition_count(members)) % members
    except InvalidKey:
        return 0
