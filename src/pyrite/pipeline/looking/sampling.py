"""The first items of each source, in place of all of them. Sources stop early; nothing is written.

A source is read no further than needed. An iterator is not used up: a job gets the same items.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrite.boxes import Outbox
from pyrite.context import Collections, MetaSupplierContext, ProcessorContext, SupplierContext
from pyrite.dag import DAG
from pyrite.engine.fusion import step_of
from pyrite.processor import Processor
from pyrite.processors.collections import ReadNamed
from pyrite.processors.items import ReadItems, ReadOnce
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.spark import ReadSpark
from pyrite.processors.transforms import noop
from pyrite.suppliers import (
    ProcessorMetaSupplier,
    ProcessorSupplier,
    meta_supplier_of,
    suppliers_by_member,
)
from pyrite.weights import count_of, is_batch


def sample_suppliers(dag: DAG, count: int, collections: Collections | None) -> dict[str, Any]:
    """By name, suppliers for the sources and sinks of a DAG: sources that emit only their first
    `count` items, and sinks that write nothing. A vertex without outbound edges is a sink.

    Named maps and lists are those of `collections`, or empty.
    """
    suppliers: dict[str, Any] = {}
    for vertex in dag.vertices:
        if not dag.outbound(vertex):
            suppliers[vertex.name] = noop()
        elif not dag.inbound(vertex):
            step = step_of(vertex.supplier)
            suppliers[vertex.name] = (
                StepSupplier(_FirstOfSource(step, count, collections))
                if isinstance(step, ReadStep)
                else _FirstOfProcessors(meta_supplier_of(vertex.supplier, vertex.name), count)
            )
    return suppliers


@dataclass(frozen=True, slots=True)
class _FirstOfSource(ReadStep):
    source: ReadStep
    count: int
    collections: Collections | None

    @property
    def may_hold_none(self) -> bool:  # type: ignore[override]
        return self.source.may_hold_none

    @property
    def may_block(self) -> bool:  # type: ignore[override]
        return self.source.may_block

    def going_on(self) -> ReadStep:
        return replace(self, source=self.source.going_on())

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        source = self.source
        if isinstance(source, ReadOnce):
            return map(own_copy, source.first(self.count, context.vertex_name))
        if isinstance(source, ReadSpark):
            return iter(source.first(self.count))
        if isinstance(source, ReadNamed) and self.collections is not None:
            return map(own_copy, source.contents(self.collections)[: self.count])
        items = _closing(source.open(context), self.count)
        return map(own_copy, items) if isinstance(source, ReadItems) else items


def _closing(items: Iterator[Any], count: int) -> Iterator[Any]:
    """The first items of an iterator, which is then closed. A batch counts as its rows."""
    left = count
    try:
        for item in items:
            first = item.slice(0, left) if is_batch(item) else item
            left -= max(1, count_of([first]))
            yield first
            if left <= 0:
                return
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def own_copy(item: Any) -> Any:
    """A copy of an item, so that functions that change it leave the original alone. The item itself
    if it cannot be copied."""
    try:
        return copy.deepcopy(item)
    except Exception:
        return item


@dataclass(slots=True)
class _FirstOfProcessors(ProcessorMetaSupplier):
    """Makes the source processors of the user, and stops each of them early."""

    users: ProcessorMetaSupplier
    count: int

    def init(self, context: MetaSupplierContext) -> None:
        self.users.init(context)

    def get(
        self, addresses: Sequence[str]
    ) -> Sequence[ProcessorSupplier] | Mapping[str, ProcessorSupplier]:
        made = suppliers_by_member(self.users, addresses, "")
        return [_FirstOfSupplier(each, self.count) for each in made]

    def close(self, error: BaseException | None) -> None:
        self.users.close(error)


@dataclass(slots=True)
class _FirstOfSupplier(ProcessorSupplier):
    users: ProcessorSupplier
    count: int

    def init(self, context: SupplierContext) -> None:
        self.users.init(context)

    def get(self, count: int) -> Sequence[Processor]:
        made = self.users.get(count)
        if not all(isinstance(each, Processor) for each in made):
            return made  # whoever called this says what is wrong
        return [_FirstOfProcessor(each, self.count) for each in made]

    def complete(self) -> None:
        self.users.complete()

    def close(self, error: BaseException | None) -> None:
        self.users.close(error)


class _FirstOfProcessor(Processor):
    """Passes on the first items that a processor emits to each edge. It has completed as soon as
    one edge has got `count` items."""

    def __init__(self, users: Processor, count: int) -> None:
        self.cooperative, self.polls = users.cooperative, users.polls
        self._users = users
        self._left = count

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        self._users.attach(Outbox([self._left] * len(outbox.buckets), outbox.vertex))

    def init(self, context: ProcessorContext) -> None:
        self._users.init(context)

    def complete(self) -> bool | None:
        answer = self._users.complete()
        most = 0
        for ordinal, bucket in enumerate(self._users.outbox.buckets):
            self.outbox.add_all(bucket[: self._left], ordinal)
            most = max(most, len(bucket))
            bucket.clear()
        self._left -= most
        return True if self._left <= 0 else answer

    def close(self, error: BaseException | None) -> None:
        self._users.close(error)
