"""Folds for sort and limit. The first of two runs where the items are, the second gets what all
processors have left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyrite.processors.loops.steps import Fold, Lines

RUN = 1024
"""How many sorted items travel as one list."""
_ITEM, _RUN = "item", "run"


@dataclass(frozen=True, slots=True)
class _Listing(Fold):
    """A fold whose state is a list of items. Its results are pairs, because results that are not
    emitted yet are saved like the state."""

    finishes = True

    def new_state(self) -> list[Any]:
        return []

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        return Lines(value, [f"state.append({value})"])

    def results(self, state: list[Any]) -> list[Any]:
        return [(_ITEM, item) for item in state]

    def finished(self, results: Iterable[Any]) -> list[Any]:
        return [result for _, result in results]

    def save(self, state: list[Any]) -> Iterable[tuple[Any, Any]]:
        return [(_ITEM, item) for item in state]

    def restore(self, state: list[Any], key: Any, value: Any) -> None:
        if key == _RUN:
            state.extend(value)
        else:
            state.append(value)


@dataclass(frozen=True, slots=True)
class _Sorting(_Listing):
    key: Callable[[Any], Any] | None
    reverse: bool

    def late_function(self) -> Callable[[Any], Any] | None:
        return self.key


@dataclass(frozen=True, slots=True)
class SortLocally(_Sorting):
    """Emits its items in order, in lists of up to `RUN`."""

    def results(self, state: list[Any]) -> list[Any]:
        state.sort(key=self.key, reverse=self.reverse)
        return [(_RUN, state[start : start + RUN]) for start in range(0, len(state), RUN)]


@dataclass(frozen=True, slots=True)
class MergeSorted(_Sorting):
    """Emits the items of sorted lists in order. Python's sort finds the runs and merges them."""

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        return Lines(value, [f"state.extend({value})"])

    def results(self, state: list[Any]) -> list[Any]:
        state.sort(key=self.key, reverse=self.reverse)
        return [(_ITEM, item) for item in state]


@dataclass(frozen=True, slots=True)
class Limit(_Listing):
    """Emits the first `count` items that it gets. Then the sources in `stops` are not read any
    further, and its steps that may be endless end."""

    count: int
    stops: tuple[str, ...] = ()

    def is_full(self, state: list[Any]) -> bool:
        return len(state) >= self.count

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        # The loop ends here: a flat map before it may be endless.
        return Lines(value, [f"if len(state) >= {self.count}: return", f"state.append({value})"])
