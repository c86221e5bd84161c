"""Named maps and lists in Redis or Valkey, through redis-py.

A map is the hash `pyrite:map:NAME`, a list is the list `pyrite:list:NAME`.
"""

from __future__ import annotations

import builtins
import importlib.util
from typing import Any

from pyrite.collections.redis.lists import RedisList
from pyrite.collections.redis.maps import RedisMap
from pyrite.collections.redis.names import Kind, key_of
from pyrite.collections.redis.server import Server
from pyrite.collections.redis.writes import Asking, WriteLine, Writes
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.errors import PyriteError

__all__ = [
    "CollectionsUnavailable",
    "ExecutionCollections",
    "RedisCollections",
    "RedisList",
    "RedisMap",
]


class _Named:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def map(self, name: str) -> RedisMap:
        return RedisMap(name, key_of("map", name), self._asking)

    def list(self, name: str) -> RedisList:
        return RedisList(name, key_of("list", name), self._asking)

    def share(self, kind: Kind, name: str, index: int, count: int) -> builtins.list[Any]:
        """The pairs or items that one of `count` members reads. Members do not read at the same
        moment, so each entry of a map belongs to one of them by its key. The items of a list move
        to other places, so the first member reads all of them."""
        if kind == "map":
            return self.map(name).share(index, count)
        return self.list(name).copy() if index == 0 else []


class RedisCollections(_Named):
    """The maps and lists at a URL. They outlive every process, and all who use the same database
    share them."""

    def __init__(self, url: str) -> None:
        if importlib.util.find_spec("redis") is None:
            raise PyriteError(
                "named maps and lists in Redis need the package redis, which is not installed "
                "here: pip install 'pyrite[redis]'"
            )
        self.server = Server(url)
        self._line = WriteLine(self.server)
        super().__init__(self.server)

    def for_execution(self) -> ExecutionCollections:
        """The same maps and lists, as the processors of one execution use them."""
        return ExecutionCollections(Writes(self.server, self._line))

    def contents(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """A triple for each map and list of the database: `"map"` or `"list"`, the name, and the
        pairs or items."""
        found: builtins.list[tuple[str, str, builtins.list[Any]]] = []
        for name in self._names("map"):
            found.append(("map", name, builtins.list(self.map(name).items())))
        for name in self._names("list"):
            found.append(("list", name, self.list(name).copy()))
        return [each for each in found if each[2]]

    def _names(self, kind: Kind) -> builtins.list[str]:
        start, cursor = key_of(kind, ""), b"0"
        names: set[bytes] = set()
        while True:
            cursor, keys = self.server.call(
                f"a {kind}", "SCAN", cursor, "MATCH", start + b"*", "COUNT", 1000
            )
            names.update(key.removeprefix(start) for key in keys)
            if cursor == b"0":
                return [name.decode("utf-8", "surrogatepass") for name in sorted(names)]

    def close(self) -> None:
        """Ends the connections."""
        self._line.close()
        self.server.close()


class ExecutionCollections(_Named):
    """Writes do not wait for the server; `flush` waits for all of them."""

    def __init__(self, writes: Writes) -> None:
        self.flush = writes.flush
        super().__init__(writes)
