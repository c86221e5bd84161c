"""filter_map, and inspect: steps that a pipeline has in addition to map, filter and flat_map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyrite.processors.checks import checked_function
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.inlining import call_or_inline
from pyrite.processors.loops.steps import Lines, Transform


def filter_map(fn: Callable[[Any], Any]) -> StepSupplier:
    """Emits `fn(item)` for each item, except where it is None."""
    return StepSupplier(FilterMap(checked_function("filter_map", "fn", fn)))


def inspect(fn: Callable[[Any], object]) -> StepSupplier:
    """Calls `fn(item)` and emits the item."""
    return StepSupplier(Inspect(checked_function("inspect", "fn", fn)))


def reject(fn: Callable[[Any], Any]) -> StepSupplier:
    """Emits the items for which `fn(item)` is false."""
    return StepSupplier(Reject(checked_function("reject", "fn", fn)))


@dataclass(frozen=True, slots=True)
class FilterMap(Transform):
    fn: Callable[[Any], Any]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        result = f"v{index}"
        return Lines(
            result,
            [
                f"{result} = {call_or_inline(self.fn, f'fn{index}', value)}",
                f"if {result} is None: continue",
                f"n{index} += 1",
            ],
            {f"fn{index}": self.fn},
            counts=True,
        )


@dataclass(frozen=True, slots=True)
class Inspect(Transform):
    fn: Callable[[Any], object]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        return Lines(value, [f"fn{index}({value})"], {f"fn{index}": self.fn})


@dataclass(frozen=True, slots=True)
class Reject(Transform):
    fn: Callable[[Any], Any]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        return Lines(
            value,
            [f"if fn{index}({value}): continue", f"n{index} += 1"],
            {f"fn{index}": self.fn},
            counts=True,
        )
