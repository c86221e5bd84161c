"""What the tasks of a job write: each attempt at a task under keys of its own.

All keys of a job are in the set `pyrite:job:ID`. Without that set nothing can be written for the
job, so that an attempt that runs on after its end leaves nothing behind. All of them expire;
whoever completes the job keeps them as long as it lives (`commits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyrite.collections.redis.names import Kind, job_key, key_of
from pyrite.collections.redis.server import Script, Server
from pyrite.collections.redis.writes import WriteLine, Writes, in_commands

KEEP_SECONDS: Final = 3600
MOST_IN_A_SCRIPT: Final = 5000
"""Lua passes no more than some 8,000 arguments."""

WRITE: Final = Script("""
if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('ENDED the job that it is for has ended')
end
redis.call('SADD', KEYS[2], KEYS[1])
redis.call(ARGV[1], KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
""")
PUBLISH: Final = Script("""
if redis.call('EXISTS', KEYS[1]) == 0 then
    return redis.error_reply('ENDED the job that it is for has ended')
end
for at = 2, #KEYS, 2 do
    redis.call('RENAME', KEYS[at], KEYS[at + 1])
    redis.call('SADD', KEYS[1], KEYS[at + 1])
end
""")


@dataclass(frozen=True, slots=True)
class Written:
    """What one attempt has written to one map or list."""

    kind: Kind
    name: str
    key: bytes


class Attempt:
    """A task's side: it adds, and names what it has added to. `task` is what all attempts at the
    same task have in common. If all of them must say the same (`must_repeat`), an attempt that has
    added everything puts that in the place of what an earlier one has added."""

    def __init__(
        self, server: Server, job: str, task: str, attempt: str, *, must_repeat: bool = False
    ) -> None:
        self._server = server
        self._job = job_key(job)
        self._task = b"%b:%b:" % (self._job, task.encode())
        self._own = b"%b%b:" % (self._task, attempt.encode())
        self._must_repeat = must_repeat
        self._line = WriteLine(server)
        self._writes = Writes(server, self._line)
        self._written: dict[tuple[str, str], Written] = {}

    def add(self, kind: Kind, name: str, values: Sequence[bytes]) -> None:
        of = f"the {kind} '{name}'"
        written = self._written.get((kind, name))
        if written is None and values:
            if not self._written:
                self._server.call(of, "SCRIPT", "LOAD", WRITE.text)
            written = Written(kind, name, self._own + key_of(kind, name))
            self._written[kind, name] = written
        if written is not None:
            start = ("EVALSHA", WRITE.sha, 2, written.key, self._job)
            command = ("HSET" if kind == "map" else "RPUSH", KEEP_SECONDS)
            for each in in_commands((*start, *command), values, MOST_IN_A_SCRIPT - 2):
                self._writes.write(of, [each])

    def flush(self) -> list[Written]:
        """Waits until everything is written."""
        self._writes.flush()
        written = list(self._written.values())
        if not self._must_repeat or not written:
            return written
        common = [replace(each, key=self._task + key_of(each.kind, each.name)) for each in written]
        pairs = [key for own, other in zip(written, common) for key in (own.key, other.key)]
        self._server.run("what a task writes", PUBLISH, [self._job, *pairs])
        return common

    def close(self) -> None:
        self._line.close()
