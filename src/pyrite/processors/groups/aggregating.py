"""Folds of aggregates. The first of two makes states where the items are, and the second combines
the states that it gets from all processors.

By key, the first emits `(key, state)`, and the second emits `(key, result, ...)`. A partitioned
edge cannot carry None as a key, so None travels between the two as `Nothing.KEY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyrite.bad_records import Handling, NotAboutOneItem
from pyrite.functions import message_of
from pyrite.partitioning import canonical_bytes
from pyrite.processors.groups.aggregates import Aggregate, Nothing
from pyrite.processors.groups.grouping import Grouping, known_group, spilling
from pyrite.processors.groups.initial import is_shareable
from pyrite.processors.loops.inlining import call_or_inline
from pyrite.processors.loops.steps import Fold, Lines

Aggregates = tuple[Aggregate[Any, Any], ...]


def first_of(pair: Any) -> Any:
    return pair[0]


def check_key(key: Any) -> None:
    """Raises InvalidKey for a key that no partitioned edge can carry."""
    if key is not None:
        canonical_bytes(key)


def updated_states(
    aggregates: Aggregates, index: int, olds: list[str], value: str, is_kept: str = "True"
) -> tuple[list[str], list[str], list[str], dict[str, Any]]:
    """The lines that make the new states from the old ones and an item, in two parts; the variables
    of the new states; and the names that the lines use. The first part raises if the item is bad.
    The second part is of aggregates that change their state in place, and have checked the item in
    the first: an error there is not about one item.

    In the first part, aggregates that may change their state come last, when the others have the
    item. If there are several, an error of one is only about the item if those before it have made
    new states, or if the states are new and not kept: the expression `is_kept` says that."""
    checks: list[str] = []
    updates: list[str] = []
    changes: list[str] = []
    last: list[str] = []
    names: dict[str, Any] = {}
    changed: list[str] = []
    news = [f"new{index}_{number}" for number in range(len(aggregates))]
    for number, aggregate in enumerate(aggregates):
        name, old, new = f"fn{index}_{number}", olds[number], news[number]
        is_checked, item = aggregate.check is not None, value
        if not is_checked and aggregate.changes_state and aggregate.of is not None:
            # Evaluated before any state is changed.
            item, names[f"of_{name}"] = f"item_{name}", aggregate.of
            checks.append(f"{item} = {call_or_inline(aggregate.of, f'of_{name}', value)}")
            aggregate = replace(aggregate, of=None)
        update, used = aggregate.accumulated(name, old, item)
        names = {**used, **names}
        if is_checked:
            checks.append(f"check_{name}({old}, {value})")
            names[f"check_{name}"] = aggregate.check
            last.append(f"{new} = {update}")
        elif not aggregate.changes_state:
            updates.append(f"{new} = {update}")
        else:
            if changed:
                changes += [
                    f"try: {new} = {update}",
                    f"except Exception as half{index}:",
                    f"    if {is_kept}: unchanged{index}(half{index}, {', '.join(changed)})",
                    "    raise",
                ]
                names[f"unchanged{index}"] = _check_unchanged
            else:
                changes.append(f"{new} = {update}")
            changed.append(f"({old}, {new})")
    return [*checks, *updates, *changes], last, news, names


def _check_unchanged(error: Exception, *states: tuple[Any, Any]) -> None:
    """Raises if one of the states may have been changed in place. Each is there as it was before
    and as it is now."""
    if any(new is old and not is_shareable(new) for old, new in states):
        raise NotAboutOneItem(
            "an item has raised in an aggregate of a step with on_error, when another aggregate of "
            "the step had changed its state in place, so the item would be in some results and "
            "not in others; give all but one of these aggregates a check=, or say "
            f"changes_state=False if they do not change it. The error was {message_of(error)}"
        ) from error


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

    def handling_lines(
        self,
        index: int,
        value: str,
        vertex: str,
        check_new_key: Callable[[Any], Any] | None,
        handling: Handling,
    ) -> Lines:
        # A group is stored when all its states have the item: one that only has bad records does
        # not exist. A key that no edge could carry is found here, with its item.
        several = len(self.aggregates) > 1
        firsts, names = [], {f"valid{index}": check_new_key or check_key}
        for number, aggregate in enumerate(self.aggregates):
            first, used = aggregate.first_state(f"first{index}_{number}")
            firsts.append(first)
            names.update(used)
        olds = [f"old{index}[{n}]" if several else f"old{index}" for n in range(len(firsts))]
        is_kept = f"key{index} in state"
        updates, last, news, used = updated_states(self.aggregates, index, olds, value, is_kept)
        names.update(used)
        start = f"[{', '.join(firsts)}]" if several else firsts[0]
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: valid{index}(key{index}); old{index} = {start}",
            *spilling(index, value),
            *updates,
        ]
        lines = self.grouping_lines(index, value, self.key, check_new_key, code, names)
        lines = lines.handling_errors(index, value, handling)
        state = f"[{', '.join(news)}]" if several else news[0]
        return replace(lines, code=[*lines.code, *last, f"state[key{index}] = {state}"])

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

    def handling_lines(
        self,
        index: int,
        value: str,
        vertex: str,
        check_new_key: Callable[[Any], Any] | None,
        handling: Handling,
    ) -> Lines:
        olds = [f"state[{number}]" for number in range(len(self.aggregates))]
        code, last, news, names = updated_states(self.aggregates, index, olds, value)
        lines = Lines(value, code, names).handling_errors(index, value, handling)
        return replace(lines, code=[*lines.code, *last, f"state[:] = [{', '.join(news)}]"])

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
