"""A named list in Redis: a list of pickles."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

from pyrite.collections.named import NamedList
from pyrite.collections.redis.server import Command, Script
from pyrite.collections.redis.writes import Asking, in_commands
from pyrite.collections.stored.places import checked_index, place_of
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.collections.stored.values import packed, unpacked

# Redis inserts and removes next to a value, not at an index. An empty string, which no pickle is,
# marks the place.
TAKE: Final = Script("""
local value = redis.call('LINDEX', KEYS[1], ARGV[1])
if value then
    redis.call('LSET', KEYS[1], ARGV[1], '')
    redis.call('LREM', KEYS[1], 1, '')
end
return value
""")
INSERT: Final = Script("""
local count, at = redis.call('LLEN', KEYS[1]), tonumber(ARGV[1])
if at < 0 then at = math.max(0, count + at) end
if at >= count then
    redis.call('RPUSH', KEYS[1], ARGV[2])
else
    local old = redis.call('LINDEX', KEYS[1], at)
    redis.call('LSET', KEYS[1], at, '')
    redis.call('LINSERT', KEYS[1], 'BEFORE', '', ARGV[2])
    redis.call('LSET', KEYS[1], at + 1, old)
end
""")


class RedisList(NamedList):
    """A named list in Redis or Valkey. Items come back as copies: to change one, store it again."""

    __slots__ = ("_key", "_of", "_server")

    def __init__(self, name: str, key: bytes, server: Asking) -> None:
        self.name = name
        self._key = key
        self._of = f"the list '{name}'"
        self._server = server

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        found = self._server.call(self._of, "LINDEX", self._key, checked_index(index))
        if found is None:
            raise IndexError("list index out of range")
        return unpacked(found)

    def _slice(self, wanted: slice) -> builtins.list[Any]:
        if wanted.step is not None and checked_index(wanted.step) != 1:
            return self.copy()[wanted]
        start = 0 if wanted.start is None else checked_index(wanted.start)
        stop = None if wanted.stop is None else checked_index(wanted.stop)
        if stop == 0:
            return []
        return self._read(start, -1 if stop is None else stop - 1)

    def _read(self, first: int, last: int) -> builtins.list[Any]:
        values = self._server.call(self._of, "LRANGE", self._key, _within(first), _within(last))
        return builtins.list(map(unpacked, values))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            added = [packed(each) for each in value]

            def replace(values: builtins.list[bytes]) -> None:
                values[index] = added

            self._rewrite(replace)
            return
        try:
            self._server.call(self._of, "LSET", self._key, checked_index(index), packed(value))
        except CollectionsUnavailable as error:
            if any(words in str(error.__cause__) for words in ("out of range", "no such key")):
                raise IndexError("list assignment index out of range") from None
            raise

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            self._rewrite(lambda values: operator.delitem(values, index))
        elif self._server.run(self._of, TAKE, [self._key], checked_index(index)) is None:
            raise IndexError("list assignment index out of range")

    def __len__(self) -> int:
        count: int = self._server.call(self._of, "LLEN", self._key)
        return count

    def copy(self) -> builtins.list[Any]:
        return self._read(0, -1)

    def insert(self, index: int, value: Any) -> None:
        self._server.run(self._of, INSERT, [self._key], checked_index(index), packed(value))

    def append(self, value: Any) -> None:
        self._server.write(self._of, [("RPUSH", self._key, packed(value))])

    def extend(self, values: Iterable[Any]) -> None:
        self._server.write(self._of, in_commands(("RPUSH", self._key), [*map(packed, values)]))

    def pop(self, index: int = -1) -> Any:
        taken = self._server.run(self._of, TAKE, [self._key], checked_index(index))
        if taken is None:
            raise IndexError("pop index out of range" if len(self) else "pop from empty list")
        return unpacked(taken)

    def remove(self, value: Any) -> None:
        self._rewrite(lambda values: operator.delitem(values, place_of(value, values)))

    def reverse(self) -> None:
        self._rewrite(builtins.list.reverse)

    def clear(self) -> None:
        self._server.call(self._of, "UNLINK", self._key)

    def _rewrite(self, change: Callable[[builtins.list[bytes]], object]) -> None:
        """Changes the list of pickles, as one step."""

        def commands(values: builtins.list[bytes]) -> tuple[builtins.list[Command], None]:
            change(values)
            return [("DEL", self._key), *in_commands(("RPUSH", self._key), values)], None

        self._server.change(self._of, self._key, "LRANGE", self._key, 0, -1, change=commands)


def _within(index: int) -> int:
    """An index that Redis can read: no list is longer."""
    return max(-(1 << 62), min(1 << 62, index))
