"""Grouped: items with their key, and what can be made of all items of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.pipeline import agg, edges
from pyrite.pipeline.building import Options, in_two_steps
from pyrite.pipeline.nodes import Node
from pyrite.processors.checks import checked_function
from pyrite.processors.groups.aggregates import Aggregate, composed
from pyrite.processors.groups.aggregating import GroupLocally, GroupTotals
from pyrite.processors.transforms import flat_map
from pyrite.retries import Retry

if TYPE_CHECKING:
    from pyrite.pipeline.stage import Stage

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")
A1 = TypeVar("A1")
A2 = TypeVar("A2")
A3 = TypeVar("A3")
A4 = TypeVar("A4")
A5 = TypeVar("A5")
A6 = TypeVar("A6")
A7 = TypeVar("A7")
A8 = TypeVar("A8")
A9 = TypeVar("A9")
A10 = TypeVar("A10")


class Grouped(Generic[K, T]):
    """Values of type T in groups with keys of type K, as `stage.group_by(key)` makes them. Each
    processor combines what it has of a group; then each group goes to one processor."""

    __slots__ = ("_key", "_on_error", "_stage", "_value")

    def __init__(
        self,
        stage: Stage[Any],
        key: Callable[[Any], Any],
        value: Callable[[Any], Any] | None = None,
        *,
        on_error: ErrorPolicy = FAIL,
    ) -> None:
        self._stage = stage
        self._key = key
        self._value = value
        self._on_error: ErrorPolicy = on_error

    def map_values(self, fn: Callable[[T], U]) -> Grouped[K, U]:
        """The same groups, of `fn(item)` in place of each item.

        >>> from pyrite import Pipeline, agg
        >>> words = Pipeline().read_from(["be", "by", "so"]).group_by(lambda word: word[0])
        >>> sorted(words.map_values(str.upper).aggregate(agg.to_list()).collect())
        [('b', ['BE', 'BY']), ('s', ['SO'])]
        """
        checked_function("map_values", "fn", fn)
        value = fn if self._value is None else composed(self._value, fn)
        return Grouped(self._stage, self._key, value, on_error=self._on_error)

    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        a6: Aggregate[T, A6],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5, A6]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        a6: Aggregate[T, A6],
        a7: Aggregate[T, A7],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5, A6, A7]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        a6: Aggregate[T, A6],
        a7: Aggregate[T, A7],
        a8: Aggregate[T, A8],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5, A6, A7, A8]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        a6: Aggregate[T, A6],
        a7: Aggregate[T, A7],
        a8: Aggregate[T, A8],
        a9: Aggregate[T, A9],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5, A6, A7, A8, A9]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        a2: Aggregate[T, A2],
        a3: Aggregate[T, A3],
        a4: Aggregate[T, A4],
        a5: Aggregate[T, A5],
        a6: Aggregate[T, A6],
        a7: Aggregate[T, A7],
        a8: Aggregate[T, A8],
        a9: Aggregate[T, A9],
        a10: Aggregate[T, A10],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10]]: ...
    def aggregate(
        self,
        *aggregates: Aggregate[Any, Any],
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[Any]:
        """Emits `(key, result, ...)` for each group, with the result of each aggregate.

        >>> from pyrite import Pipeline, agg
        >>> orders = Pipeline().read_from([("a", 3), ("b", 1), ("a", 4)])
        >>> grouped = orders.group_by(lambda order: order[0])
        >>> sorted(grouped.aggregate(agg.count(), agg.sum(lambda order: order[1])).collect())
        [('a', 2, 7), ('b', 1, 1)]
        """
        return self._aggregated(
            "aggregate",
            agg.checked(aggregates, "aggregate"),
            self._options(name, parallelism, on_error),
        )

    def count(
        self,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, int]]:
        """Emits `(key, number of items)` for each group.

        >>> from pyrite import Pipeline
        >>> sorted(Pipeline().read_from("aba").group_by(str.upper).count().collect())
        [('A', 2), ('B', 1)]
        """
        counted = GroupLocally(self._key, (agg.count(),))  # the values do not matter
        return self._grouped("count", counted, self._options(name, parallelism, on_error))

    def reduce(
        self,
        fn: Callable[[T, T], T],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, T]]:
        """Emits `(key, item)` for each group: its items reduced to one with `fn(item, item)`, in
        any order.

        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([1, 2, 3]).group_by(lambda n: n % 2)
        >>> sorted(numbers.reduce(lambda a, b: a + b).collect())
        [(0, 2), (1, 4)]
        """
        return self._aggregated(
            "reduce", (agg.reduce(fn),), self._options(name, parallelism, on_error)
        )

    def top(
        self,
        n: int,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, list[T]]]:
        """Emits `(key, list)` for each group: its `n` items with the largest keys, largest first.

        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([1, 2, 3, 5]).group_by(lambda n: n % 2)
        >>> sorted(numbers.top(2).collect())
        [(0, [2]), (1, [5, 3])]
        """
        return self._aggregated(
            "top", (agg.top(n, key),), self._options(name, parallelism, on_error)
        )

    def map_groups(
        self,
        fn: Callable[[K, list[T]], Iterable[U]],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]:
        """Emits all items of the iterable that `fn(key, items)` returns for each group. The group
        is held in memory as a list.

        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([1, 2, 3]).group_by(lambda n: n % 2)
        >>> sorted(numbers.map_groups(lambda key, items: [len(items)] * key).collect())
        [2]
        """
        checked_function("map_groups", "fn", fn)
        options = self._options(name, parallelism, on_error)._replace(retry=retry)
        groups = self._node(
            f"{name or 'map_groups'}-group",
            GroupLocally(self._key, self._of_values((agg.to_list(),))),
            options.without_name(),
        )
        inside = self._stage._inside(groups)
        return inside._locally("map_groups", flat_map(_OfGroup(fn)), options)

    def _options(self, name: str | None, parallelism: int | None, on_error: ErrorPolicy) -> Options:
        return Options(name, parallelism, self._on_error if on_error == FAIL else on_error)

    def _aggregated(
        self, name: str, aggregates: tuple[Aggregate[Any, Any], ...], options: Options
    ) -> Stage[Any]:
        return self._grouped(name, GroupLocally(self._key, self._of_values(aggregates)), options)

    def _of_values(
        self, aggregates: tuple[Aggregate[Any, Any], ...]
    ) -> tuple[Aggregate[Any, Any], ...]:
        if self._value is None:
            return aggregates
        return tuple(aggregate.on(self._value) for aggregate in aggregates)

    def _grouped(self, name: str, first: GroupLocally, options: Options) -> Stage[Any]:
        return self._stage._stage(self._node(name, first, options))

    def _node(self, name: str, first: GroupLocally, options: Options) -> Node:
        second = GroupTotals(first.aggregates)
        return in_two_steps(self._stage, name, first, edges.by_key, second, options)


@dataclass(frozen=True, slots=True)
class _OfGroup:
    """Calls a function of a key and a list for a pair of them."""

    fn: Callable[[Any, list[Any]], Iterable[Any]]

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """Messages name this function."""
        return self.fn

    def __call__(self, group: tuple[Any, list[Any]]) -> Iterable[Any]:
        return self.fn(*group)
