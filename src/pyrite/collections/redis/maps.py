"""A named map in Redis: a hash. An entry is stored under the canonical bytes of its key, as a
pickle of the key and the value. Redis does not keep the order of the entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from zlib import crc32

from pyrite.collections.named import NamedMap
from pyrite.collections.redis.server import Script
from pyrite.collections.redis.writes import Asking, in_commands
from pyrite.collections.stored.fields import field_of
from pyrite.collections.stored.values import packed, unpacked
from pyrite.keys import one_nan, with_one_nan

POP: Final = Script("""
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if entry then redis.call('HDEL', KEYS[1], ARGV[1]) end
return entry
""")
POP_ANY: Final = Script("""
local field = redis.call('HRANDFIELD', KEYS[1])
if not field then return false end
local entry = redis.call('HGET', KEYS[1], field)
redis.call('HDEL', KEYS[1], field)
return entry
""")
SET_DEFAULT: Final = Script("""
local entry = redis.call('HGET', KEYS[1], ARGV[1])
if not entry then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return entry
""")


class RedisMap(NamedMap):
    """A named map in Redis or Valkey. Values come back as copies: to change one, store it again."""

    __slots__ = ("_key", "_of", "_server")

    def __init__(self, name: str, key: bytes, server: Asking) -> None:
        self.name = name
        self._key = key
        self._of = f"the map '{name}'"
        self._server = server

    def __getitem__(self, key: Any) -> Any:
        entry = self._server.call(self._of, "HGET", self._key, field_of(key))
        if entry is None:
            raise KeyError(key)
        return unpacked(entry)[1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: Any) -> None:
        if not self._server.call(self._of, "HDEL", self._key, field_of(key)):
            raise KeyError(key)

    def __len__(self) -> int:
        count: int = self._server.call(self._of, "HLEN", self._key)
        return count

    def __contains__(self, key: object) -> bool:
        return bool(self._server.call(self._of, "HEXISTS", self._key, field_of(key)))

    def copy(self) -> dict[Any, Any]:
        return with_one_nan(dict(map(unpacked, self._server.call(self._of, "HVALS", self._key))))

    def share(self, index: int, count: int) -> list[tuple[Any, Any]]:
        """One of several parts of the entries. The key of an entry decides which part has it."""
        flat = self._server.call(self._of, "HGETALL", self._key)
        own = [
            entry for field, entry in zip(flat[::2], flat[1::2]) if crc32(field) % count == index
        ]
        return [(one_nan(key), value) for key, value in map(unpacked, own)]

    def update(self, other: Any = (), /, **more: Any) -> None:
        pairs = dict(other, **more)
        self._server.write(self._of, in_commands(("HSET", self._key), flat_entries(pairs.items())))

    def pop(self, key: Any, *default: Any) -> Any:
        if len(default) > 1:
            raise TypeError(f"pop expected at most 2 arguments, got {1 + len(default)}")
        entry = self._server.run(self._of, POP, [self._key], field_of(key))
        if entry is not None:
            return unpacked(entry)[1]
        if default:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> tuple[Any, Any]:
        entry = self._server.run(self._of, POP_ANY, [self._key])
        if entry is None:
            raise KeyError(f"the map '{self.name}' is empty")
        key, value = unpacked(entry)
        return one_nan(key), value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        entry = self._server.run(
            self._of, SET_DEFAULT, [self._key], field_of(key), packed((key, default))
        )
        return default if entry is None else unpacked(entry)[1]

    def clear(self) -> None:
        self._server.call(self._of, "UNLINK", self._key)


def flat_entries(pairs: Iterable[tuple[Any, Any]]) -> list[bytes]:
    """The fields and the entries for pairs, in turn."""
    flat: list[bytes] = []
    for pair in pairs:
        flat += field_of(pair[0]), packed(pair)
    return flat
