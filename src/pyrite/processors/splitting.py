"""Divides items between two branches by a predicate. It is called once for each item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrite.boxes import Inbox
from pyrite.processor import FailedAt, Processor
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.selecting import reject
from pyrite.processors.transforms import filter


@dataclass(frozen=True, slots=True)
class Split:
    """Emits an item to the edges of branch 0 if `fn(item)` is true, otherwise to those of branch 1.
    `branches` has the branch of each outbound edge."""

    fn: Callable[[Any], Any]
    branches: tuple[int, ...] = ()

    def for_edges(self, branches: Sequence[int]) -> Split | StepSupplier:
        """A supplier for a vertex with these outbound edges. If all are of one branch, it is a
        filter, which can be fused."""
        if set(branches) == {0}:
            return filter(self.fn)
        if set(branches) == {1}:
            return reject(self.fn)
        return replace(self, branches=tuple(branches))

    def __call__(self) -> Processor:
        return _Splitter(self)


class _Splitter(Processor):
    polls = False

    def __init__(self, split: Split) -> None:
        self._fn = split.fn
        self._branches = split.branches
        self._at: Any = None

    def process(self, ordinal: int, inbox: Inbox) -> None:
        items = inbox.pending()[: max(self.outbox.room(), 0)]
        chosen: tuple[list[Any], list[Any]] = ([], [])
        fn = self._fn
        for self._at in items:
            chosen[0 if fn(self._at) else 1].append(self._at)
        self._at = None
        for edge, branch in enumerate(self._branches):
            self.outbox.add_all(chosen[branch], edge)
        inbox.remove(len(items))

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(item=self._at if self._at is not None else inbox.peek())
