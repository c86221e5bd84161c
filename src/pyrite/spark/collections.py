"""Named maps and lists of a job on Spark, where they are in memory: the driver gets the items that
a task adds, and puts them into the real map or list when the job has completed."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

from pyrite.context import Collections
from pyrite.errors import ProcessorError
from pyrite.processors.chain import StepSupplier
from pyrite.processors.collections import ReadList, ReadMap
from pyrite.processors.items import ReadItems
from pyrite.spark.packets import COLLECTED, PacketWriter


class JobCollections:
    """How one job uses named maps and lists, on the driver."""

    store: Store | None = None
    """What a task must know to use them itself; None if only the driver can."""

    def begin(self) -> None:
        """Called before anything else."""

    def source(self, step: ReadMap | ReadList) -> StepSupplier:
        """What reads a map or list in tasks: what it holds now."""
        raise NotImplementedError

    def commit(self, collected: Sequence[Any]) -> None:
        """Puts in what the tasks have added, by what they have told the driver."""
        raise NotImplementedError

    def end(self) -> None:
        """Called when the job has ended, whether it was committed or not."""


class Store(Protocol):
    def in_task(
        self, writer: PacketWriter, task: str, attempt: str, must_repeat: bool
    ) -> TaskCollections:
        """The collections for one attempt at a task. If it must repeat what other attempts at the
        same task do, it must tell the driver the same."""


class OnDriver(JobCollections):
    """In the memory of the driver, or of members."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    def source(self, step: ReadMap | ReadList) -> StepSupplier:
        return StepSupplier(ReadItems(step.contents(self._collections)))

    def commit(self, collected: Sequence[Collected]) -> None:
        for each in collected:
            each.put(self._collections)


@dataclass(frozen=True, slots=True)
class Collected:
    """Items that the driver must add to a named map or list."""

    kind: Literal["map", "list"]
    name: str
    contents: Any

    def put(self, collections: Collections) -> None:
        if self.kind == "map":
            collections.map(self.name).update(self.contents)
        else:
            collections.list(self.name).extend(self.contents)


class TaskCollections:
    def __init__(self, writer: PacketWriter) -> None:
        self.writer = writer

    def map(self, name: str) -> TaskMap:
        return TaskMap(name, self.writer)

    def list(self, name: str) -> TaskList:
        return TaskList(name, self.writer)

    def flush(self) -> None:
        """Called when the task has added everything, before it reports to the driver."""

    def close(self) -> None:
        """Called at the end of the task, also after a failure."""


def _refuse(kind: str, name: str) -> NoReturn:
    raise ProcessorError(
        f"the {kind} '{name}' is on the driver; a task of a Spark job can only add to it. To read "
        f"it, use p.read_{kind}('{name}')"
    )


class TaskMap(MutableMapping[Any, Any]):
    def __init__(self, name: str, writer: PacketWriter) -> None:
        self._name = name
        self._writer = writer

    def update(self, other: Any = (), /, **more: Any) -> None:
        self._writer.tell_driver(COLLECTED, Collected("map", self._name, dict(other, **more)))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.update({key: value})

    def __getitem__(self, key: Any) -> Any:
        _refuse("map", self._name)

    def __delitem__(self, key: Any) -> None:
        _refuse("map", self._name)

    def __iter__(self) -> Iterator[Any]:
        _refuse("map", self._name)

    def __len__(self) -> int:
        _refuse("map", self._name)


class TaskList(MutableSequence[Any]):
    def __init__(self, name: str, writer: PacketWriter) -> None:
        self._name = name
        self._writer = writer

    def extend(self, values: Iterable[Any]) -> None:
        self._writer.tell_driver(COLLECTED, Collected("list", self._name, builtins.list(values)))

    def append(self, value: Any) -> None:
        self.extend([value])

    def insert(self, index: int, value: Any) -> None:
        _refuse("list", self._name)

    def __getitem__(self, index: Any) -> Any:
        _refuse("list", self._name)

    def __setitem__(self, index: Any, value: Any) -> None:
        _refuse("list", self._name)

    def __delitem__(self, index: Any) -> None:
        _refuse("list", self._name)

    def __iter__(self) -> Iterator[Any]:
        _refuse("list", self._name)

    def __len__(self) -> int:
        _refuse("list", self._name)
