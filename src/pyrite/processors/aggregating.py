"""Folds of aggregates. The first of two makes states where the items are, and the second combines
the states that it gets from all processors.

By key, the first emits `(key, state)`, and the second emits `(key, result, ...)`. A partitioned
edge cannot carry None as a key, so None travels between the two as `Nothing.KEY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyrite.processors.aggregates import Aggregate, Nothing
from pyrite.processors.grouping import Grouping, known_group, spilling
from pyrite.processors.inlining import call_or_inline
from pyrite.processors.steps import Fold, Lines

Aggregates = tuple[Aggregate[Any, Any], ...]


def first_of(pair: Any) -> Any:
    return pair[0]


@dataclass(frozen=True, slots=True)
class GroupLocally(Grouping):
    """Emits `(key, state)` for one aggregate, `(key, [state, ...])` for several."""

    key: Callable[[Any], Any]
    aggregates: Aggregates

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        names: dict[str, Any] = {}
        firsts, updates = [], []
        several = len(self.aggregates) > 1
        for number, aggregate in enumerate(self.aggregates):
            old = f"old{index}[{number}]" if several else f"old{index}"
            first, used = aggregate.first_state(f"first{index}_{number}")
            update, also = aggregate.accumulated(f"fn{index}_{number}", old, value)
            names.update({**used, **also})
            firsts.append(first)
            updates.append(f"{old if several else f'state[key{index}]'} = {update}")
        start = f"state[key{index}] = [{', '.join(firsts)}]" if several else firsts[0]
        check = f"check{index}(key{index}); " if check_new_key else ""
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: {check}old{index} = {start}",
            *spilling(index, value),
            *updates,
        ]
        return self.grouping_lines(index, value, self.key, check_new_key, code, names)

    @property
    def only_counts(self) -> bool:  # type: ignore[override]
        return (
            len(self.aggregates) == 1
            and self.aggregates[0].only_counts
            and call_or_inline(self.key, "", "item") == "item"
        )

    def key_function(self) -> Callable[[Any], Any]:
        return self.key

    def results(self, state: dict[Any, Any]) -> list[Any]:
        if None in state:
            state[Nothing.KEY] = state.pop(None)
        return list(state.items())


@dataclass(frozen=True, slots=True)
class GroupTotals(Grouping):
    """Combines what `GroupLocally` emits. Emits `(key, result, ...)`, or only the result of the
    one aggregate if `keys` is false."""

    aggregates: Aggregates
    keys: bool = True

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        check = f"check{index}(key{index}); " if check_new_key else ""
        several = len(self.aggregates) > 1
        first = f"[*{value}[1]]" if several else f"{value}[1]"  # an item is not changed
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: {check}state[key{index}] = {first}; continue",
            *spilling(index, value),
        ]
        names = {}
        if several:
            code.append(f"new{index} = {value}[1]")
        for number, aggregate in enumerate(self.aggregates):
            name, place = f"fn{index}_{number}", f"[{number}]"
            old = f"old{index}{place}" if several else f"old{index}"
            new = f"new{index}{place}" if several else f"{value}[1]"
            combined = call_or_inline(aggregate.combine, name, old, new)
            code.append(f"{old if several else f'state[key{index}]'} = {combined}")
            names[name] = aggregate.combine
        return self.grouping_lines(index, value, first_of, check_new_key, code, names)

    @property
    def finishes(self) -> bool:  # type: ignore[override]
        return len(self.aggregates) > 1 or self.aggregates[0].finish is not None or not self.keys

    def key_function(self) -> Callable[[Any], Any]:
        return first_of

    def results(self, state: dict[Any, Any]) -> list[Any]:
        if Nothing.KEY in state:
            state[None] = state.pop(Nothing.KEY)
        return list(state.items())

    def finished(self, results: Iterable[Any]) -> list[Any]:
        if len(self.aggregates) > 1:
            finishes = [aggregate.result for aggregate in self.aggregates]
            return [
                (key, *(finish(state) for finish, state in zip(finishes, states)))
                for key, states in results
            ]
        finish = self.aggregates[0].result
        if self.keys:
            return [(key, finish(state)) for key, state in results]
        return [finish(state) for _, state in results]


@dataclass(frozen=True, slots=True)
class AllLocally(Fold):
    """Emits one list of states, also if there are no items."""

    aggregates: Aggregates

    def new_state(self) -> list[Any]:
        return [aggregate.create() for aggregate in self.aggregates]

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        code, names = [], {}
        for number, aggregate in enumerate(self.aggregates):
            place = f"state[{number}]"
            update, used = aggregate.accumulated(f"fn{index}_{number}", place, value)
            code.append(f"{place} = {update}")
            names.update(used)
        return Lines(value, code, names)

    def results(self, state: list[Any]) -> list[Any]:
        return [state]

    def save(self, state: list[Any]) -> Iterable[tuple[Any, Any]]:
        return list(enumerate(state))

    def restore(self, state: list[Any], key: Any, value: Any) -> None:
        state[key] = value


@dataclass(frozen=True, slots=True)
class AllTotals(Fold):
    """Combines what `AllLocally` emits. Emits the result of one aggregate, or a tuple of the
    results of several. If `spreads`, it emits each item of the one result, a list;
    the state must be a list of such items, too.

    Only one processor gets states. The others emit nothing. A single result that is None, such as
    the smallest of no items, is not emitted: an edge cannot carry None.
    """

    aggregates: Aggregates
    spreads: bool = False

    def new_state(self) -> list[Any]:
        return []

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        code, names = ["if not state:", f"    state.extend({value})", "    continue"], {}
        for number, aggregate in enumerate(self.aggregates):
            name, place = f"fn{index}_{number}", f"[{number}]"
            combined = call_or_inline(aggregate.combine, name, f"state{place}", f"{value}{place}")
            code.append(f"state{place} = {combined}")
            names[name] = aggregate.combine
        return Lines(value, code, names)

    def results(self, state: list[Any]) -> list[Any]:
        if not state:
            return []
        made = tuple(agg.result(each) for agg, each in zip(self.aggregates, state))
        if self.spreads:
            return [(_SPREAD, item) for item in made[0]]
        if len(made) > 1:
            return [made]
        return [] if made[0] is None else [made[0]]

    @property
    def finishes(self) -> bool:  # type: ignore[override]
        return self.spreads

    def finished(self, results: Iterable[Any]) -> list[Any]:
        return [item for _, item in results]

    def save(self, state: list[Any]) -> Iterable[tuple[Any, Any]]:
        return list(enumerate(state))

    def restore(self, state: list[Any], key: Any, value: Any) -> None:
        if key != _SPREAD:
            state[key:] = [value]
        elif state:
            state[0].append(value)
        else:
            state.append([value])


_SPREAD = "spread"
"""The key of a result that is saved because it is not emitted yet. The state that spreads is a list
of such items."""
