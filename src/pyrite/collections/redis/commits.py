"""A job as the process that completes it sees it: what attempts have written goes into the real
maps and lists in one step."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyrite.collections.redis.attempts import KEEP_SECONDS, Written
from pyrite.collections.redis.names import Kind, job_key, key_of
from pyrite.collections.redis.server import Script, Server
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.collections.stored.values import unpacked

logger = logging.getLogger("pyrite.collections")

REFRESH_SECONDS: Final = 300.0
COMMIT_SECONDS: Final = 600.0
"""A commit moves everything that the job has written."""
ITEMS_READ_AT_ONCE: Final = 10_000

_MOVE: Final = """
local function add(command, target, values)
    for at = 1, #values, 5000 do
        redis.call(command, target, unpack(values, at, math.min(at + 4999, #values)))
    end
end
"""
COPY: Final = Script(
    _MOVE
    + """
if ARGV[1] == 'list' then
    redis.call('COPY', KEYS[1], KEYS[2])
else
    add('RPUSH', KEYS[2], redis.call('HVALS', KEYS[1]))
end
redis.call('SADD', KEYS[3], KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return redis.call('LLEN', KEYS[2])
"""
)
# All checks come first: what a script has done is not undone when it raises.
COMMIT: Final = Script(
    _MOVE
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local types = {map = 'hash', list = 'list'}
for at = 2, #KEYS, 2 do
    local kind = ARGV[at / 2 + 1]
    if redis.call('EXISTS', KEYS[at]) == 0 then
        return redis.error_reply('LOST what a task has written is gone; does Redis evict keys?')
    end
    local found = redis.call('TYPE', KEYS[at + 1]).ok
    if found ~= 'none' and found ~= types[kind] then
        return redis.error_reply('WRONGTYPE ' .. KEYS[at + 1])
    end
end
for at = 2, #KEYS, 2 do
    local written, target = KEYS[at], KEYS[at + 1]
    if redis.call('EXISTS', target) == 0 then
        redis.call('RENAME', written, target)
        redis.call('PERSIST', target)
    elseif ARGV[at / 2 + 1] == 'map' then
        add('HSET', target, redis.call('HGETALL', written))
    else
        add('RPUSH', target, redis.call('LRANGE', written, 0, -1))
    end
end
redis.call('SET', KEYS[1], '', 'EX', ARGV[1])
return 1
"""
)
KEEP: Final = Script("""
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do redis.call('EXPIRE', key, ARGV[1]) end
""")
END: Final = Script("""
local committed = redis.call('EXISTS', KEYS[2])
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do redis.call('UNLINK', key) end
redis.call('UNLINK', KEYS[1])
if ARGV[1] == '0' then redis.call('UNLINK', KEYS[2]) end
return committed
""")


class WrittenJob:
    """`begin`, then `commit` or not, then `end`. Several attempts to complete one job, each under
    an id of its own, have a `mark` in common: only the first commit changes anything, for as long
    as `mark_seconds`."""

    def __init__(
        self, url: str, id: str, *, mark: bytes | None = None, mark_seconds: int = KEEP_SECONDS
    ) -> None:
        self._server = Server(url)
        self._patient = Server(url, answer_seconds=COMMIT_SECONDS)
        self._of = "what a job writes"
        self._key = job_key(id)
        self._committed = mark or self._key + b":committed"
        self._keeps_mark = int(mark is not None)
        self._mark_seconds = mark_seconds
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self._copied: dict[tuple[Kind, str], Copied] = {}

    def begin(self) -> None:
        self._server.write(
            self._of, [("SADD", self._key, self._key), ("EXPIRE", self._key, KEEP_SECONDS)]
        )
        self._keeper = threading.Thread(target=self._keep, name="pyrite-redis", daemon=True)
        self._keeper.start()

    def copy(self, kind: Kind, name: str) -> Copied:
        """A copy of what a map or list held when this was first called, for all tasks of all
        vertices that read it."""
        copied = self._copied.get((kind, name))
        if copied is None:
            key = self._key + b":in:" + key_of(kind, name)
            keys = [key_of(kind, name), key, self._key]
            count = self._patient.run(f"the {kind} '{name}'", COPY, keys, kind, KEEP_SECONDS)
            copied = self._copied[kind, name] = Copied(kind, name, key, count)
        return copied

    def commit(self, written: Sequence[Written]) -> bool:
        """Puts what attempts have written into the real maps and lists, as one step. False if
        another attempt has done so before: then it changes nothing."""
        if not written and not self._keeps_mark:
            return True
        keys = [key for each in written for key in (each.key, key_of(each.kind, each.name))]
        names = ", ".join(sorted({f"the {each.kind} '{each.name}'" for each in written}))
        kinds = [each.kind for each in written]
        try:
            keys = [self._committed, *keys]
            return bool(
                self._patient.run(names or self._of, COMMIT, keys, self._mark_seconds, *kinds)
            )
        except CollectionsUnavailable as error:
            # Maybe it was done, and only the reply did not come. If not, it never will be.
            try:
                committed = self._end()
            except CollectionsUnavailable:
                raise error from None
            if not committed:
                raise
            return True

    def _end(self) -> bool:
        """Removes the keys of the job. Returns whether it was committed."""
        keys = [self._key, self._committed]
        return bool(self._server.run(self._of, END, keys, self._keeps_mark))

    def end(self) -> None:
        """Removes what is left of the job."""
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()
            try:
                self._end()
            except CollectionsUnavailable as error:
                logger.warning("what is left of a job is removed in an hour: %s", error)
        self._server.close()
        self._patient.close()

    def _keep(self) -> None:
        while not self._ended.wait(REFRESH_SECONDS):
            try:
                self._server.run(self._of, KEEP, [self._key], KEEP_SECONDS)
            except CollectionsUnavailable as error:
                logger.warning("%s", error)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a map or list held when a job began: the pickles of its pairs or items."""

    kind: Kind
    name: str
    key: bytes
    count: int

    def read(self, server: Server, share: int, shares: int) -> Iterator[Any]:
        """One of several shares of it."""
        of = f"the {self.kind} '{self.name}'"
        start, stop = (self.count * number // shares for number in (share, share + 1))
        for at in range(start, stop, ITEMS_READ_AT_ONCE):
            last = min(at + ITEMS_READ_AT_ONCE, stop) - 1
            values = server.call(of, "LRANGE", self.key, at, last)
            if len(values) != last + 1 - at:
                raise CollectionsUnavailable(
                    f"{of} is in Redis at {server.address}, and the copy of it that the job reads "
                    "is gone; has Redis too little memory? Run the job again"
                )
            yield from map(unpacked, values)
