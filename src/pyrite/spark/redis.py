"""Named maps and lists in Redis, in jobs on Spark: tasks read and write them directly, and the
driver commits what they have written."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pyrite.collections.redis import RedisCollections, RedisList, RedisMap
from pyrite.collections.redis.attempts import Attempt, Written
from pyrite.collections.redis.commits import Copied, WrittenJob
from pyrite.collections.redis.maps import flat_entries
from pyrite.collections.redis.names import key_of
from pyrite.collections.redis.server import Server
from pyrite.collections.stored.values import packed
from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.processors.collections import ReadList, ReadMap
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep
from pyrite.spark.collections import JobCollections, TaskCollections
from pyrite.spark.packets import COLLECTED, PacketWriter


class InRedis(JobCollections):
    """The driver's side."""

    def __init__(self, url: str, execution_id: str) -> None:
        self._job = WrittenJob(url, execution_id)
        self.store = RedisStore(url, execution_id)

    def begin(self) -> None:
        self._job.begin()

    def source(self, step: ReadMap | ReadList) -> StepSupplier:
        return StepSupplier(ReadCopy(self._job.copy(step.kind, step.name)))

    def commit(self, collected: Sequence[Written]) -> None:
        self._job.commit(collected)

    def end(self) -> None:
        self._job.end()


@dataclass(frozen=True, slots=True)
class ReadCopy(ReadStep):
    """Replaces `read_map` and `read_list` inside a task: all tasks, and all attempts at them, read
    what the map or list held when the job began."""

    copied: Copied

    @property
    def may_hold_none(self) -> bool:  # type: ignore[override]
        return self.copied.kind == "list"

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        collections: Any = context.collections
        return self.copied.read(
            collections.opened().server, context.global_index, context.total_parallelism
        )


@dataclass(frozen=True, slots=True)
class RedisStore:
    """What a task must know. The URL, which may have a password, travels with the task."""

    url: str = field(repr=False)
    execution_id: str

    def in_task(
        self, writer: PacketWriter, task: str, attempt: str, must_repeat: bool
    ) -> RedisTaskCollections:
        def new_attempt(server: Server) -> Attempt:
            return Attempt(server, self.execution_id, task, attempt, must_repeat=must_repeat)

        return RedisTaskCollections(self.url, writer, new_attempt)


class RedisTaskCollections(TaskCollections):
    """Connects when it is used first."""

    def __init__(
        self, url: str, writer: PacketWriter, new_attempt: Callable[[Server], Attempt]
    ) -> None:
        super().__init__(writer)
        self._url = url
        self._new_attempt = new_attempt
        self._opened: RedisCollections | None = None
        self._attempt: Attempt | None = None

    def opened(self) -> RedisCollections:
        with self.writer.lock:
            if self._opened is None:
                self._opened = RedisCollections(self._url)
            return self._opened

    def _writing(self) -> Attempt:
        server = self.opened().server
        with self.writer.lock:
            if self._attempt is None:
                self._attempt = self._new_attempt(server)
            return self._attempt

    def map(self, name: str) -> RedisTaskMap:  # type: ignore[override]
        server = self.opened().server
        return RedisTaskMap(name, key_of("map", name), server, self._writing())

    def list(self, name: str) -> RedisTaskList:  # type: ignore[override]
        server = self.opened().server
        return RedisTaskList(name, key_of("list", name), server, self._writing())

    def flush(self) -> None:
        if self._attempt is not None:
            for written in self._attempt.flush():
                self.writer.tell_driver(COLLECTED, written)

    def close(self) -> None:
        if self._attempt is not None:
            self._attempt.close()
        if self._opened is not None:
            self._opened.close()


def _refuse(of: str) -> NoReturn:
    raise ProcessorError(
        f"a task of a Spark job can read {of} and add to it, but not change it in another way, "
        "because Spark may run a task more than once; do that before or after the job"
    )


class RedisTaskMap(RedisMap):
    """It reads what was there before the job, and adds to what is there after it."""

    __slots__ = ("_attempt",)

    def __init__(self, name: str, key: bytes, server: Any, attempt: Attempt) -> None:
        super().__init__(name, key, server)
        self._attempt = attempt

    def update(self, other: Any = (), /, **more: Any) -> None:
        self._attempt.add("map", self.name, flat_entries(dict(other, **more).items()))

    def __delitem__(self, key: Any) -> None:
        _refuse(self._of)

    def pop(self, key: Any, *default: Any) -> Any:
        _refuse(self._of)

    def popitem(self) -> tuple[Any, Any]:
        _refuse(self._of)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        _refuse(self._of)

    def clear(self) -> None:
        _refuse(self._of)


class RedisTaskList(RedisList):
    """It reads what was there before the job, and adds to what is there after it."""

    __slots__ = ("_attempt",)

    def __init__(self, name: str, key: bytes, server: Any, attempt: Attempt) -> None:
        super().__init__(name, key, server)
        self._attempt = attempt

    def extend(self, values: Iterable[Any]) -> None:
        self._attempt.add("list", self.name, builtins.list(map(packed, values)))

    def append(self, value: Any) -> None:
        self.extend([value])

    def insert(self, index: int, value: Any) -> None:
        _refuse(self._of)

    def __setitem__(self, index: Any, value: Any) -> None:
        _refuse(self._of)

    def __delitem__(self, index: Any) -> None:
        _refuse(self._of)

    def pop(self, index: int = -1) -> Any:
        _refuse(self._of)

    def remove(self, value: Any) -> None:
        _refuse(self._of)

    def reverse(self) -> None:
        _refuse(self._of)

    def clear(self) -> None:
        _refuse(self._of)
