"""Steps that need all items. Each processor combines its items before any are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.pipeline import agg, edges
from pyrite.pipeline.building import Options
from pyrite.pipeline.steps.point import Point
from pyrite.processors.checks import checked_count, checked_optional_function
from pyrite.processors.groups.aggregates import Aggregate
from pyrite.processors.groups.aggregating import AllLocally, AllTotals, GroupLocally, GroupTotals
from pyrite.processors.groups.ordering import Limit, MergeSorted, SortLocally

if TYPE_CHECKING:
    from pyrite.pipeline.stage import Stage

T = TypeVar("T", covariant=True)
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


class AllItems(Point[T]):
    """Aggregates of all items, distinct items, the top, the order, and some."""

    __slots__ = ()

    def distinct(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]:
        """One of the items with the same key; without `key`, one of equal items.

        >>> from pyrite import Pipeline
        >>> sorted(Pipeline().read_from([3, 1, 3]).distinct().collect())
        [1, 3]
        """
        checked_optional_function("distinct", "key", key)
        one: tuple[Aggregate[Any, Any], ...] = (Aggregate(_nothing, _first_item, _first_item),)
        return self._combined(
            "distinct",
            GroupLocally(key or _itself, one),
            edges.by_key,
            GroupTotals(one, keys=False),
            Options(name, parallelism, on_error),
        )

    @overload
    def aggregate(
        self,
        a1: Aggregate[T, A1],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[A1]: ...
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
    ) -> Stage[tuple[A1, A2]]: ...
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
    ) -> Stage[tuple[A1, A2, A3]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8, A9]]: ...
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
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8, A9, A10]]: ...
    def aggregate(
        self,
        *aggregates: Aggregate[Any, Any],
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[Any]:
        """Emits the result of one aggregate of all items, or a tuple of the results of several. It
        emits once, also if there are no items.

        >>> from pyrite import Pipeline, agg
        >>> numbers = Pipeline().read_from([1, 2])
        >>> numbers.aggregate(agg.count()).collect()
        [2]
        >>> numbers.aggregate(agg.min(), agg.max()).collect()
        [(1, 2)]
        """
        return self._aggregated(
            "aggregate", agg.checked(aggregates, "aggregate"), Options(name, parallelism, on_error)
        )

    def count(self, *, name: str | None = None, parallelism: int | None = None) -> Stage[int]:
        """Emits the number of items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from("abc").count().collect()
        [3]
        """
        return self._aggregated("count", (agg.count(),), Options(name, parallelism))

    def reduce(
        self,
        fn: Callable[[T, T], T],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]:
        """Emits the items reduced to one with `fn(item, item)`, in any order; nothing if there are
        no items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).reduce(lambda a, b: a + b).collect()
        [6]
        """
        return self._aggregated("reduce", (agg.reduce(fn),), Options(name, parallelism, on_error))

    def top(
        self,
        n: int,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]:
        """Emits the `n` items with the largest keys, largest first.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a", "bcd", "ef"]).top(2, key=len).collect()
        ['bcd', 'ef']
        """
        best = (agg.top(n, key),)
        return self._combined(
            "top",
            AllLocally(best),
            edges.all_to_one,
            AllTotals(best, spreads=True),
            Options(name, parallelism, on_error),
            in_order=True,
        )

    def sort(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        reverse: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]:
        """Emits the items in order. One processor holds them all. The order is kept until items are
        exchanged between processors again.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["bcd", "a", "ef"]).sort(key=len).map(str.upper).collect()
        ['A', 'EF', 'BCD']
        """
        checked_optional_function("sort", "key", key)
        options = Options(name, parallelism, on_error)
        return self._checked("sort", key, options)._combined(
            "sort",
            SortLocally(key, reverse),
            edges.all_to_one,
            MergeSorted(key, reverse),
            Options(name, parallelism),
            in_order=True,
        )

    def limit(self, n: int, *, name: str | None = None, parallelism: int | None = None) -> Stage[T]:
        """Emits any `n` items; after `sort`, the first. Then sources whose items all lead here are
        not read any further.

        >>> from pyrite import Pipeline
        >>> import itertools
        >>> Pipeline().read_from(itertools.count()).filter(lambda n: n % 2).limit(2).collect()
        [1, 3]
        """
        limit = Limit(checked_count("limit", "n", n))
        return self._combined(
            "limit",
            limit,
            edges.all_to_one,
            limit,
            Options(name, parallelism),
            in_order=self._in_order,
        )

    def _aggregated(
        self, name: str, aggregates: tuple[Aggregate[Any, Any], ...], options: Options
    ) -> Stage[Any]:
        return self._combined(
            name, AllLocally(aggregates), edges.all_to_one, AllTotals(aggregates), options
        )


def _itself(item: Any) -> Any:
    return item


def _nothing() -> None:
    return None


def _first_item(first: Any, item: Any) -> Any:
    return item if first is None else first
