"""Two halves of a grouping that run in one processor are one grouping: the first half groups all
rows at once, and the second passes the results on. That saves the states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyrite.context import ProcessorContext
from pyrite.processors.columns.grouping import GroupBatches
from pyrite.processors.columns.steps import BatchStep, Work


def with_whole_groups(steps: Sequence[BatchStep]) -> list[BatchStep]:
    """The steps of a processor, each after the other. The number of steps stays the same."""
    made = list(steps)
    for number, (first, second) in enumerate(pairwise(steps)):
        if isinstance(first, GroupBatches) and isinstance(second, GroupBatches):
            whole = replace(first.spec, gives="rows")
            if second.spec == replace(whole, takes="states") and first.spec.gives == "states":
                memory = second.memory if first.memory is None else first.memory
                made[number] = replace(first, spec=whole, memory=memory)
                made[number + 1] = PassOn(second)
    return made


@dataclass(frozen=True, slots=True)
class PassOn(BatchStep):
    """The second half of a grouping whose first half gives results."""

    half: GroupBatches
    prefers = None

    def open(self, context: ProcessorContext) -> Work:
        return _PassOnWork()


class _PassOnWork(Work):
    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        yield item
