"""Steps that remember something from item to item: batches of items, and a sample of them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyrite.boxes import Inbox
from pyrite.context import ProcessorContext
from pyrite.processor import Processor


@dataclass(frozen=True, slots=True)
class Batch:
    """Emits lists of `size` items; the last list of a processor may be shorter."""

    size: int

    def __call__(self) -> Processor:
        return _Batcher(self.size)


class _Batcher(Processor):
    polls = False

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: list[Any] = []

    def process(self, ordinal: int, inbox: Inbox) -> None:
        size = self._size
        most = max(self.outbox.room(), 0) * size - len(self._held)
        items = inbox.pending()[: max(most, 0)]
        held = self._held + items
        full = len(held) // size * size
        self.outbox.add_all([held[start : start + size] for start in range(0, full, size)])
        self._held = held[full:]
        inbox.remove(len(items))

    def complete(self) -> bool:
        if self._held:
            self.outbox.add(self._held)
            self._held = []
        return True

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return list(enumerate(self._held))

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self._held[key:] = [value]


@dataclass(frozen=True, slots=True)
class Sample:
    """Emits each item with the probability `fraction`. Each processor has its own random numbers,
    which depend on the seed and on the index of the processor."""

    fraction: float
    seed: int

    def __call__(self) -> Processor:
        return _Sampler(self)


class _Sampler(Processor):
    polls = False

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def init(self, context: ProcessorContext) -> None:
        self._random = random.Random(f"{self._sample.seed} {context.global_index}")

    def process(self, ordinal: int, inbox: Inbox) -> None:
        items = inbox.pending()[: max(self.outbox.room(), 0)]
        chance, fraction = self._random.random, self._sample.fraction
        self.outbox.add_all([item for item in items if chance() < fraction])
        inbox.remove(len(items))

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return [("random", self._random.getstate())]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self._random.setstate(value)
