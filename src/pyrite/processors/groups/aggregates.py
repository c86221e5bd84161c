"""Aggregate: how many items become one value, in two steps. Each processor accumulates its items;
then the states of all processors are combined. Pure description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pyrite.processors.groups.initial import is_shareable
from pyrite.processors.loops.inlining import call_or_inline

T = TypeVar("T", contravariant=True)
A = TypeVar("A")
R = TypeVar("R", covariant=True)


class Nothing(Enum):
    """What stands for None where None has another meaning. It is the same object in every
    process."""

    KEY = "the key None"
    YET = "no value yet"


@dataclass(frozen=True)  # no slots: with them, Aggregate[int, str](...) raises
class Aggregate(Generic[T, R]):
    """How to aggregate items. `create()` makes a state, `accumulate(state, item)` returns it with
    one more item, `combine(state, state)` returns one state for two, and `finish(state)` makes the
    result; without `finish`, the state is the result. `accumulate` and `combine` may change their
    first argument. States travel between processes, so they must be picklable.

    >>> from pyrite import Pipeline, agg
    >>> longest = agg.Aggregate(
    ...     create=lambda: "",
    ...     accumulate=lambda word, line: max(word, *line.split(), key=len),
    ...     combine=lambda one, two: max(one, two, key=len),
    ... )
    >>> Pipeline().read_from(["so it", "goes on"]).aggregate(longest).collect()
    ['goes']
    """

    create: Callable[[], Any]
    accumulate: Callable[[Any, Any], Any]
    combine: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any] | None = None
    of: Callable[[Any], Any] | None = None
    """If it is given, `accumulate` gets `of(item)` in place of the item. The generated loop calls
    it directly."""
    check: Callable[[Any, Any], Any] | None = None
    """For an aggregate that changes its state in place, in a step with `on_error`: `check(state,
    item)` raises for an item that `accumulate` could not take, or would only find out about later.
    It does not change the state."""
    changes_state: bool = True
    """Whether `accumulate` may change its first argument."""

    if TYPE_CHECKING:  # without `finish`, the result has the type of the state

        @overload
        def __init__(
            self,
            create: Callable[[], R],
            accumulate: Callable[[R, T], R],
            combine: Callable[[R, R], R],
            finish: None = None,
            of: Callable[[Any], Any] | None = None,
            check: Callable[[Any, Any], Any] | None = None,
            changes_state: bool = True,
        ) -> None: ...
        @overload
        def __init__(
            self,
            create: Callable[[], A],
            accumulate: Callable[[A, T], A],
            combine: Callable[[A, A], A],
            finish: Callable[[A], R],
            of: Callable[[Any], Any] | None = None,
            check: Callable[[Any, Any], Any] | None = None,
            changes_state: bool = True,
        ) -> None: ...
        def __init__(self, *arguments: Any, **options: Any) -> None: ...

    def on(self, of: Callable[[Any], Any]) -> Aggregate[Any, R]:
        """The same aggregate of `of(item)` in place of the item."""
        check = None if self.check is None else _CheckOf(of, self.check)
        return replace(self, of=of if self.of is None else composed(of, self.of), check=check)

    def first_state(self, name: str) -> tuple[str, dict[str, Any]]:
        """The expression for a new state in a generated loop, and the names that it uses."""
        initial = self.create()
        if is_shareable(initial):
            return name, {name: initial}
        return f"{name}()", {name: self.create}

    def accumulated(self, name: str, state: str, value: str) -> tuple[str, dict[str, Any]]:
        """The expression for the state with one more item, and the names that it uses."""
        if self.of is not None:
            value = call_or_inline(self.of, f"of_{name}", value)
        return call_or_inline(self.accumulate, name, state, value), {
            name: self.accumulate,
            f"of_{name}": self.of,
        }

    @property
    def only_counts(self) -> bool:
        initial = self.create()
        return (
            type(initial) is int
            and initial == 0
            and self.of is None
            and call_or_inline(self.accumulate, "", "count", "item") == "count + 1"
        )

    def result(self, state: Any) -> Any:
        return state if self.finish is None else self.finish(state)


def composed(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`second(first(item))`."""
    return _Composed(first, second)


@dataclass(frozen=True, slots=True)
class _CheckOf:
    of: Callable[[Any], Any]
    check: Callable[[Any, Any], Any]

    def __call__(self, state: Any, item: Any) -> Any:
        return self.check(state, self.of(item))


@dataclass(frozen=True, slots=True)
class _Composed:
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, item: Any) -> Any:
        return self.second(self.first(item))
