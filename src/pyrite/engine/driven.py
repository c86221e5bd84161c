"""Runs a member's part of an execution on the calling thread, round by round, and saves and resumes
it between two rounds. This is the engine inside a virtual peer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyrite.engine.failure import Failed
from pyrite.engine.member import LifeCycleFailed, MemberRun
from pyrite.engine.service import called
from pyrite.engine.tasklets import DONE_NOW, IDLE, ProcessorTasklet, ReceiverTasklet, Tasklet
from pyrite.processor import Processor
from pyrite.processors.loops.fused import FusedProcessor


@dataclass(frozen=True, slots=True)
class SavedProcessor:
    """What a processor resumes from: which of its inbound edges have ended, whether it has
    finished, and the pairs of its snapshot."""

    ended: frozenset[int]
    has_finished: bool
    pairs: Sequence[tuple[Any, Any]]


class DrivenRun:
    """All tasklets run on this thread, those of processors that may block too."""

    def __init__(self, run: MemberRun) -> None:
        self._run = run
        self._left = list(run.tasklets)

    @property
    def is_over(self) -> bool:
        """Whether all tasklets are done: the input has ended and everything is emitted."""
        return not self._left

    @property
    def is_waiting(self) -> bool:
        """Whether a processor waits for another thread, which will wake the run, or before it tries
        an item again."""
        return any(each.processor.is_waiting for each in self._run.processor_tasklets)

    @property
    def can_be_saved(self) -> bool:
        return all(_can_be_saved(each.processor) for each in self._run.processor_tasklets)

    @property
    def is_quiet(self) -> bool:
        """Whether everything that came in is either in the state of a processor or has gone out."""
        return all(
            each.is_quiet
            for each in self._run.tasklets
            if isinstance(each, (ProcessorTasklet, ReceiverTasklet))
        )

    def round(self, *, pauses_sources: bool = False) -> bool:
        """Calls each tasklet once. Returns whether any of them made progress. With paused sources,
        what they have emitted goes on its way, and nothing more comes."""
        progress = False
        left: list[Tasklet] = []
        for tasklet in self._left:
            if pauses_sources and isinstance(tasklet, ProcessorTasklet) and not tasklet.inbound:
                progress = tasklet.drain() or progress
                left.append(tasklet)
                continue
            answer = called(tasklet)
            progress = progress or answer != IDLE
            if answer != DONE_NOW:
                left.append(tasklet)
        self._left = left
        return progress or self._let_go()

    def _let_go(self) -> bool:
        """Nothing more comes for now, so nothing is held back: a quiet run can be saved."""
        return any(each.let_go() for each in self._left if isinstance(each, ProcessorTasklet))

    def save(self) -> list[SavedProcessor]:
        """The state of each processor, in their order. Only a quiet run can be saved."""
        return [
            SavedProcessor(
                each.ended_ordinals(),
                each.has_finished,
                () if each.has_finished else _snapshot(each),
            )
            for each in self._run.processor_tasklets
        ]

    def resume(self, saved: Iterable[SavedProcessor]) -> None:
        """Continues where the saved run was. Called once, before the first round."""
        for tasklet, before in zip(self._run.processor_tasklets, saved, strict=True):
            with _located(tasklet):
                for key, value in before.pairs:
                    tasklet.processor.restore_snapshot(key, value)
            tasklet.resume(before.ended, has_finished=before.has_finished)
        self._left = [
            each
            for each in self._left
            if not (isinstance(each, ProcessorTasklet) and each.has_finished)
        ]


def _can_be_saved(processor: Processor) -> bool:
    if not isinstance(processor, FusedProcessor):
        return processor.saves_state
    chain = processor.chain
    return chain.source is None and (chain.sink is None or chain.sink.writes_through)


def _snapshot(tasklet: ProcessorTasklet) -> list[tuple[Any, Any]]:
    with _located(tasklet):
        return list(tasklet.processor.save_snapshot())


@contextmanager
def _located(tasklet: ProcessorTasklet) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        failed = Failed(error, vertex=tasklet.vertex, processor=tasklet.index)
        raise LifeCycleFailed(failed) from error
