"""Named maps and lists of a job on Spark, where they are in memory: the driver gets the items that
a task adds, and puts them into the real map or list when the job has completed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from pyrite.context import Collections
from pyrite.exchange.collected import AddOnlyCollections, Collected
from pyrite.processors.collections import ReadList, ReadMap
from pyrite.processors.items import ReadItems
from pyrite.processors.loops.chain import StepSupplier
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


class TaskCollections(AddOnlyCollections):
    def __init__(self, writer: PacketWriter) -> None:
        super().__init__(partial(writer.tell_driver, COLLECTED), "a task of a Spark job")
        self.writer = writer

    def flush(self) -> None:
        """Called when the task has added everything, before it reports to the driver."""

    def close(self) -> None:
        """Called at the end of the task, also after a failure."""
