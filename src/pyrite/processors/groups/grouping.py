"""Folds, for all items or per key: accumulate replaces a value with each item, collect adds each
item to a container."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyrite.bad_records import Handling
from pyrite.keys import one_nan
from pyrite.processors.checks import checked_function, checked_optional_function
from pyrite.processors.groups.initial import checked_initial, maker_of
from pyrite.processors.loops.inlining import call_or_inline
from pyrite.processors.loops.steps import Fold, Lines
from pyrite.processors.ready_made import Inner


def accumulate(initial: Any, fn: Callable[[Any, Any], Any]) -> Inner:
    """Each processor emits one value when its input ends. The value starts as `initial`, and each
    item replaces it with `fn(value, item)`.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.accumulate(0, lambda total, n: total + n), [1, 2], [3])
    """
    checked_initial("accumulate", initial)
    return Inner(Accumulate(initial, checked_function("accumulate", "fn", fn)))


def collect(new_container: Callable[[], Any], fn: Callable[[Any, Any], Any]) -> Inner:
    """Each processor emits one container when its input ends. It is made by `new_container()`, and
    `fn(container, item)` adds each item to it.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.collect(list, list.append), [1, 2], [[1, 2]])
    """
    checked_function("collect", "new_container", new_container)
    return Inner(Collect(new_container, checked_function("collect", "fn", fn)))


def group_and_accumulate(
    key: Callable[[Any], Any],
    initial: Any,
    accumulate: Callable[[Any, Any], Any],
    finish: Callable[[Any, Any], Any] | None = None,
) -> Inner:
    """Emits `(key, value)`, or `finish(key, value)`, for each key when the input ends. The value
    starts as a copy of `initial`, and each item of the key replaces it with
    `accumulate(value, item)`.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> count = p.group_and_accumulate(str.lower, 0, lambda n, word: n + 1)
    >>> verify_processor(count, ["To", "be", "to"], [("to", 2), ("be", 1)])
    """
    name = "group_and_accumulate"
    return Inner(
        GroupAndAccumulate(
            checked_function(name, "key", key),
            checked_initial(name, initial),
            checked_function(name, "accumulate", accumulate),
            checked_optional_function(name, "finish", finish),
        )
    )


def group_and_collect(
    key: Callable[[Any], Any],
    new_container: Callable[[], Any],
    collect: Callable[[Any, Any], Any],
    finish: Callable[[Any, Any], Any] | None = None,
) -> Inner:
    """Emits `(key, container)`, or `finish(key, container)`, for each key when the input ends. The
    container is made by `new_container()`, and `collect(container, item)` adds each item of the key
    to it.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> groups = p.group_and_collect(len, list, list.append)
    >>> verify_processor(groups, ["to", "be", "or"], [(2, ["to", "be", "or"])])
    """
    name = "group_and_collect"
    return Inner(
        GroupAndCollect(
            checked_function(name, "key", key),
            checked_function(name, "new_container", new_container),
            checked_function(name, "collect", collect),
            checked_optional_function(name, "finish", finish),
        )
    )


def count_distinct(key: Callable[[Any], Any]) -> Inner:
    """Each processor emits the number of distinct keys that it received. For a total, partition the
    inbound edge by the same key and sum up the numbers.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.count_distinct(str.lower), ["To", "be", "to"], [2])
    """
    return Inner(CountDistinct(checked_function("count_distinct", "key", key)))


@dataclass(frozen=True, slots=True)
class _Single(Fold):
    """A fold with a single value. Its state is a list with that value."""

    def results(self, state: list[Any]) -> list[Any]:
        return state

    def save(self, state: list[Any]) -> Iterable[tuple[Any, Any]]:
        return [("value", state[0])]

    def restore(self, state: list[Any], key: Any, value: Any) -> None:
        state[0] = value


@dataclass(frozen=True, slots=True)
class Accumulate(_Single):
    initial: Any
    fn: Callable[[Any, Any], Any]

    def new_state(self) -> list[Any]:
        make = maker_of(self.initial)
        return [self.initial if make is None else make()]

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        return Lines(
            value,
            [f"state[0] = {call_or_inline(self.fn, f'fn{index}', 'state[0]', value)}"],
            {f"fn{index}": self.fn},
        )


@dataclass(frozen=True, slots=True)
class Collect(_Single):
    new_container: Callable[[], Any]
    fn: Callable[[Any, Any], Any]

    def new_state(self) -> list[Any]:
        return [self.new_container()]

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        return Lines(
            value,
            [call_or_inline(self.fn, f"fn{index}", f"container{index}", value)],
            {f"fn{index}": self.fn},
            setup=[f"container{index} = state[0]"],
        )


@dataclass(frozen=True, slots=True)
class Grouping(Fold):
    """A fold with one value per key. Its state is a dict."""

    is_grouping = True

    def new_state(self) -> dict[Any, Any]:
        return {}

    def results(self, state: dict[Any, Any]) -> list[Any]:
        return list(state.items())

    def save(self, state: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
        return state.items()

    def restore(self, state: dict[Any, Any], key: Any, value: Any) -> None:
        state[one_nan(key)] = value

    def grouping_lines(
        self,
        index: int,
        value: str,
        key: Callable[[Any], Any],
        check_new_key: Callable[[Any], Any] | None,
        code: list[str],
        names: dict[str, Any],
    ) -> Lines:
        keyed = f"key{index} = {call_or_inline(key, f'keyof{index}', value)}"
        return Lines(
            value,
            [keyed, *code],
            {f"keyof{index}": key, f"check{index}": check_new_key, f"one{index}": one_nan, **names},
            setup=[f"limit{index} = spill.limit"],
        )


def known_group(index: int) -> list[str]:
    """The lines that find the group of a known key. A key that is or contains NaN is found only
    after `one_nan`. Strings and ints, the most common keys, do not need that call."""
    key = f"key{index}"
    return [
        f"if {key} in state: old{index} = state[{key}]",
        f"elif type({key}) is not str and type({key}) is not int "
        f"and ({key} := one{index}({key})) in state: old{index} = state[{key}]",
    ]


def spilling(index: int, value: str) -> list[str]:
    """The lines that spill an item of a new key when memory is short."""
    return ["else:", f"    spill.add(key{index}, {value})", "    continue"]


@dataclass(frozen=True, slots=True)
class GroupAndAccumulate(Grouping):
    key: Callable[[Any], Any]
    initial: Any
    accumulate: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], Any] | None = None

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        check = f"check{index}(key{index}); " if check_new_key else ""
        make = maker_of(self.initial)
        first = f"initial{index}" if make is None else f"make{index}()"
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: {check}old{index} = {first}",
            *spilling(index, value),
            f"state[key{index}] = "
            f"{call_or_inline(self.accumulate, f'fn{index}', f'old{index}', value)}",
        ]
        names = {
            f"fn{index}": self.accumulate,
            f"initial{index}": self.initial,
            f"make{index}": make,
        }
        return self.grouping_lines(index, value, self.key, check_new_key, code, names)

    @property
    def only_counts(self) -> bool:  # type: ignore[override]
        return (
            type(self.initial) is int
            and self.initial == 0
            and call_or_inline(self.key, "", "item") == "item"
            and call_or_inline(self.accumulate, "", "count", "item") == "count + 1"
        )

    @property
    def finishes(self) -> bool:  # type: ignore[override]
        return self.finish is not None

    def key_function(self) -> Callable[[Any], Any]:
        return self.key

    def finished(self, results: Iterable[Any]) -> list[Any]:
        return _finished(self.finish, results)


@dataclass(frozen=True, slots=True)
class GroupAndCollect(Grouping):
    key: Callable[[Any], Any]
    new_container: Callable[[], Any]
    collect: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], Any] | None = None

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        check = f"check{index}(key{index}); " if check_new_key else ""
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: {check}old{index} = state[key{index}] = new{index}()",
            *spilling(index, value),
            call_or_inline(self.collect, f"fn{index}", f"old{index}", value),
        ]
        names = {f"fn{index}": self.collect, f"new{index}": self.new_container}
        return self.grouping_lines(index, value, self.key, check_new_key, code, names)

    def handling_lines(
        self,
        index: int,
        value: str,
        vertex: str,
        check_new_key: Callable[[Any], Any] | None,
        handling: Handling,
    ) -> Lines:
        # A new container is stored only when it has taken the item.
        lines = self.lines(index, value, vertex, check_new_key)
        stored, unstored = f"old{index} = state[key{index}] = new", f"old{index} = new"
        code = [line.replace(stored, unstored) for line in lines.code]
        code.append(f"state[key{index}] = old{index}")
        return replace(lines, code=code).handling_errors(index, value, handling)

    @property
    def finishes(self) -> bool:  # type: ignore[override]
        return self.finish is not None

    def key_function(self) -> Callable[[Any], Any]:
        return self.key

    def finished(self, results: Iterable[Any]) -> list[Any]:
        return _finished(self.finish, results)


@dataclass(frozen=True, slots=True)
class CountDistinct(Fold):
    key: Callable[[Any], Any]

    def key_function(self) -> Callable[[Any], Any]:
        return self.key

    def new_state(self) -> set[Any]:
        return set()

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        key = f"key{index}"
        code = [
            f"{key} = {call_or_inline(self.key, f'keyof{index}', value)}",
            f"if {key} not in state:",
            f"    if type({key}) is not str and type({key}) is not int: {key} = one{index}({key})",
            *([f"    check{index}({key})"] if check_new_key else []),
            f"    add{index}({key})",
        ]
        names = {f"keyof{index}": self.key, f"check{index}": check_new_key, f"one{index}": one_nan}
        return Lines(value, code, names, setup=[f"add{index} = state.add"])

    def results(self, state: set[Any]) -> list[Any]:
        return [len(state)]

    def save(self, state: set[Any]) -> Iterable[tuple[Any, Any]]:
        return [(key, True) for key in state]

    def restore(self, state: set[Any], key: Any, value: Any) -> None:
        state.add(one_nan(key))


def _finished(
    finish: Callable[[Any, Any], Any] | None, results: Iterable[tuple[Any, Any]]
) -> list[Any]:
    assert finish is not None
    return [finish(key, value) for key, value in results]
