"""Aggregates: what `aggregate` of a stage or of groups computes, several of them in one pass.

>>> from pyrite import Pipeline, agg
>>> numbers = Pipeline().read_from([3, 1, 2])
>>> numbers.aggregate(agg.count(), agg.sum(), agg.max(), agg.mean(lambda n: n * 10)).collect()
[(3, 6, 3, 20.0)]

Most take a function `of`, and aggregate `of(item)`; without it they aggregate the items. The mean
and the standard deviation of too few items are NaN; min, max, first and reduce of no items are
None.
"""

from __future__ import annotations

import builtins
import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from math import inf
from operator import itemgetter, ne
from typing import Any, TypeVar, overload

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.keys import one_nan, with_one_nan
from pyrite.processors.checks import (
    checked_count,
    checked_function,
    checked_optional_function,
)
from pyrite.processors.groups.aggregates import Aggregate, Nothing, composed
from pyrite.where import users_line

__all__ = [
    "Aggregate",
    "bottom",
    "count",
    "count_distinct",
    "first",
    "max",
    "mean",
    "min",
    "reduce",
    "std",
    "sum",
    "to_dict",
    "to_list",
    "to_set",
    "top",
]

T = TypeVar("T")
V = TypeVar("V")
K = TypeVar("K")
H = TypeVar("H")


def count() -> Aggregate[Any, int]:
    """The number of items.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from("abc").aggregate(count()).collect()
    [3]
    """
    return Aggregate(_zero, lambda n, item: n + 1, _add, changes_state=False)


@overload
def sum() -> Aggregate[T, T]: ...
@overload
def sum(of: Callable[[T], V]) -> Aggregate[T, V]: ...
def sum(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """The sum, from 0.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["a", "bcd"]).aggregate(sum(len)).collect()
    [4]
    """
    checked_optional_function("agg.sum", "of", of)
    return Aggregate(_zero, _add, _add, of=of, changes_state=False)


@overload
def mean() -> Aggregate[Any, float]: ...
@overload
def mean(of: Callable[[T], Any]) -> Aggregate[T, float]: ...
def mean(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, float]:
    """The arithmetic mean.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([1, 2]).aggregate(mean()).collect()
    [1.5]
    """
    return Aggregate(
        _no_values,
        lambda state, value: (state[0] + 1, state[1] + value),
        lambda one, two: (one[0] + two[0], one[1] + two[1]),
        lambda state: state[1] / state[0] if state[0] else math.nan,
        of=checked_optional_function("agg.mean", "of", of),
        changes_state=False,
    )


@overload
def std(*, ddof: int = 1) -> Aggregate[Any, float]: ...
@overload
def std(of: Callable[[T], Any], *, ddof: int = 1) -> Aggregate[T, float]: ...
def std(of: Callable[[Any], Any] | None = None, *, ddof: int = 1) -> Aggregate[Any, float]:
    """The standard deviation: of a sample, or of a whole population with `ddof=0`.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([1, 3]).aggregate(std(), std(ddof=0)).collect()
    [(1.4142135623730951, 1.0)]
    """
    return Aggregate(
        lambda: (0, 0.0, 0.0),
        _with_one_more,
        _both_moments,
        lambda state: math.sqrt(state[2] / (state[0] - ddof)) if state[0] > ddof else math.nan,
        of=checked_optional_function("agg.std", "of", of),
        changes_state=False,
    )


@overload
def min() -> Aggregate[T, T]: ...
@overload
def min(of: Callable[[T], V]) -> Aggregate[T, V]: ...
def min(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """The smallest value. For the item with the smallest value, use `bottom(1, key)`.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["bcd", "ef"]).aggregate(min(), min(len)).collect()
    [('bcd', 2)]
    """
    return _folding(builtins.min, checked_optional_function("agg.min", "of", of))


@overload
def max() -> Aggregate[T, T]: ...
@overload
def max(of: Callable[[T], V]) -> Aggregate[T, V]: ...
def max(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """The largest value. For the item with the largest value, use `top(1, key)`.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["bcd", "ef"]).aggregate(max(), max(len)).collect()
    [('ef', 3)]
    """
    return _folding(builtins.max, checked_optional_function("agg.max", "of", of))


@overload
def first() -> Aggregate[T, T]: ...
@overload
def first(of: Callable[[T], V]) -> Aggregate[T, V]: ...
def first(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """One of the values: the first that arrives.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["a", "a"]).aggregate(first(), count()).collect()
    [('a', 2)]
    """
    return _folding(_earlier, checked_optional_function("agg.first", "of", of))


def reduce(fn: Callable[[T, T], T]) -> Aggregate[T, T]:
    """The items reduced to one with `fn(item, item)`, in any order.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([2, 3, 4]).aggregate(reduce(lambda a, b: a * b)).collect()
    [24]
    """
    return replace(_folding(checked_function("agg.reduce", "fn", fn), None), changes_state=True)


def top(n: int, key: Callable[[T], Any] | None = None) -> Aggregate[T, list[T]]:
    """The `n` items with the largest keys, largest first. NaN is smaller than all other keys.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([3, 1, 2]).aggregate(top(2)).collect()
    [[3, 2]]
    """
    return _best("agg.top", heapq.nlargest, n, _Rank(key, -inf))


def bottom(n: int, key: Callable[[T], Any] | None = None) -> Aggregate[T, list[T]]:
    """The `n` items with the smallest keys, smallest first. NaN is larger than all other keys.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([3, 1, 2]).aggregate(bottom(2)).collect()
    [[1, 2]]
    """
    return _best("agg.bottom", heapq.nsmallest, n, _Rank(key, inf))


@overload
def to_list() -> Aggregate[T, list[T]]: ...
@overload
def to_list(of: Callable[[T], V]) -> Aggregate[T, list[V]]: ...
def to_list(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """All values in a list.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([3, 1]).aggregate(to_list()).collect()
    [[3, 1]]
    """
    checked_optional_function("agg.to_list", "of", of)
    return Aggregate(list, _appended, _extended, of=of, check=_alone(of or _anything))


@overload
def to_set() -> Aggregate[T, set[T]]: ...
@overload
def to_set(of: Callable[[T], H]) -> Aggregate[T, set[H]]: ...
def to_set(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, Any]:
    """The distinct values in a set.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from([3, 1, 3]).aggregate(to_set()).collect()
    [{1, 3}]
    """
    checked_optional_function("agg.to_set", "of", of)
    return Aggregate(set, _added, _united, of=of, check=_alone(_hashable(of)))


def to_dict(key: Callable[[T], K], value: Callable[[T], V]) -> Aggregate[T, dict[K, V]]:
    """A dict of `key(item): value(item)`. Which value of equal keys it keeps is unspecified.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["a", "bc"]).aggregate(to_dict(lambda s: s, len)).collect()
    [{'a': 1, 'bc': 2}]
    """
    checked_function("agg.to_dict", "key", key)
    checked_function("agg.to_dict", "value", value)
    return Aggregate(
        dict, partial(_put, key, value), _merged, check=_alone(partial(_put, key, value, {}))
    )


@overload
def count_distinct() -> Aggregate[Any, int]: ...
@overload
def count_distinct(of: Callable[[T], Any]) -> Aggregate[T, int]: ...
def count_distinct(of: Callable[[Any], Any] | None = None) -> Aggregate[Any, int]:
    """The number of distinct values.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["a", "b", "cd"]).aggregate(count_distinct(len)).collect()
    [2]
    """
    checked_optional_function("agg.count_distinct", "of", of)
    return Aggregate(set, _added, _united, len, of=of, check=_alone(_hashable(of)))


def unspecified(aggregate: Aggregate[Any, Any]) -> str | None:
    """What the result of an aggregate leaves open, in a sentence; None if it leaves nothing open.

    >>> unspecified(first()), unspecified(count())
    ('agg.first() is any of the values', None)
    """
    function = aggregate.accumulate
    if function is _appended:
        return "the order of a list of agg.to_list() is not specified"
    if not isinstance(function, partial):
        return None
    if function.func in (_with_candidate, _with_ranked):
        return "which of the items with equal keys are the top or bottom ones is not specified"
    if function.func is _put:
        return "which value of equal keys agg.to_dict() keeps is not specified"
    is_first = function.func is _either and function.args[0] is _earlier
    return "agg.first() is any of the values" if is_first else None


def checked(
    aggregates: tuple[Aggregate[Any, Any], ...], method: str
) -> tuple[Aggregate[Any, Any], ...]:
    """The arguments of `aggregate`. Raises InvalidDAG unless they are aggregates."""
    for aggregate in aggregates:
        if not isinstance(aggregate, Aggregate):
            raise InvalidDAG(
                f"{method}() in {users_line()} needs aggregates, such as agg.count(); got "
                f"{shorten(aggregate)}"
            )
    if not aggregates:
        raise InvalidDAG(
            f"{method}() in {users_line()} needs at least one aggregate, such as agg.count()"
        )
    return aggregates


def _zero() -> int:
    return 0


def _no_values() -> tuple[int, Any]:
    return 0, 0


def _add(one: Any, two: Any) -> Any:
    return one + two


def _folding(fn: Callable[[Any, Any], Any], of: Callable[[Any], Any] | None) -> Aggregate[Any, Any]:
    either = partial(_either, fn)
    return Aggregate(_nothing_yet, either, either, _or_none, of=of, changes_state=False)


def _nothing_yet() -> Any:
    return Nothing.YET


def _either(fn: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    if one is Nothing.YET:
        return two
    return one if two is Nothing.YET else fn(one, two)


def _or_none(state: Any) -> Any:
    return None if state is Nothing.YET else state


def _earlier(one: Any, two: Any) -> Any:
    return one


@dataclass(frozen=True, slots=True)
class _Rank:
    """The rank of an item among others: its key. NaN has no order, so it gets the worst rank."""

    key: Callable[[Any], Any] | None
    worst: float

    def __call__(self, item: Any) -> Any:
        found = item if self.key is None else self.key(item)
        return found if found == found else self.worst

    def is_needed(self, items: list[Any]) -> bool:
        """Whether items without a key have another order than their ranks: one of them is NaN."""
        return any(map(ne, items, items))


def _best(
    name: str, best: Callable[..., list[Any]], n: int, rank: _Rank
) -> Aggregate[Any, list[Any]]:
    checked_optional_function(name, "key", rank.key)
    checked_count(name, "n", n)
    if rank.key is not None:
        kept = partial(_kept, best, n)
        return Aggregate(
            list,
            partial(_with_ranked, rank, kept, 2 * n + 64),
            lambda one, two: kept(one + two),
            lambda state: [item for _, item in kept(state)],
            check=partial(_can_be_ranked, rank),
        )
    chosen = partial(_chosen, best, n, rank)
    return Aggregate(
        list,
        partial(_with_candidate, chosen, 2 * n + 64),
        lambda one, two: chosen(one + two),
        chosen,
        check=partial(_can_be_compared, rank),
    )


def _chosen(best: Callable[..., list[Any]], n: int, rank: _Rank, items: list[Any]) -> list[Any]:
    return best(n, items, rank) if rank.is_needed(items) else best(n, items)


def _with_candidate(
    chosen: Callable[[list[Any]], list[Any]], most: int, state: list[Any], item: Any
) -> list[Any]:
    """Appends the item, and drops all but the best whenever there are many more: that costs less
    than a heap that is in order after each item."""
    state.append(item)
    return chosen(state) if len(state) >= most else state


def _kept(best: Callable[..., list[Any]], n: int, state: list[Any]) -> list[Any]:
    return best(n, state, itemgetter(0))


def _with_ranked(
    rank: _Rank, kept: Callable[[list[Any]], list[Any]], most: int, state: list[Any], item: Any
) -> list[Any]:
    """The same with pairs of a rank and its item: the key function is called once for an item, and
    where it comes in, so that an error is about that item."""
    state.append((rank(item), item))
    return kept(state) if len(state) >= most else state


def _can_be_ranked(rank: _Rank, state: list[Any], item: Any) -> None:
    found = rank(item)
    if state:
        bool(found < state[0][0])


def _can_be_compared(rank: _Rank, state: list[Any], item: Any) -> None:
    found = rank(item)
    if state:
        bool(found < rank(state[0]))


def _anything(item: Any) -> None:
    """Checks nothing."""


def _alone(check: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A check of the item that does not depend on the state."""
    return partial(_check_item, check)


def _check_item(check: Callable[[Any], Any], state: Any, item: Any) -> None:
    check(item)


def _hashable(of: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return hash if of is None else composed(of, hash)


def _appended(state: list[Any], value: Any) -> list[Any]:
    state.append(value)
    return state


def _extended(one: list[Any], two: list[Any]) -> list[Any]:
    one.extend(two)
    return one


def _added(state: set[Any], value: Any) -> set[Any]:
    state.add(one_nan(value))
    return state


def _united(one: set[Any], two: set[Any]) -> set[Any]:
    one.update(map(one_nan, two))  # each process has a NaN of its own
    return one


def _merged(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    one.update(with_one_nan(two))  # each process has a NaN of its own
    return one


def _put(
    key: Callable[[Any], Any], value: Callable[[Any], Any], state: dict[Any, Any], item: Any
) -> dict[Any, Any]:
    state[one_nan(key(item))] = value(item)
    return state


def _with_one_more(state: tuple[int, float, float], value: Any) -> tuple[int, float, float]:
    """Count, mean and sum of squared differences with one more value, by Welford's method."""
    n, average, squares = state
    n += 1
    if isinstance(value, Decimal):
        value = float(value)  # a Decimal cannot be subtracted from a float
    difference = value - average
    average += difference / n
    return n, average, squares + difference * (value - average)


def _both_moments(
    one: tuple[int, float, float], two: tuple[int, float, float]
) -> tuple[int, float, float]:
    """The same of the values of both, by Chan's method."""
    n = one[0] + two[0]
    if not n:
        return one
    difference = two[1] - one[1]
    return (
        n,
        one[1] + difference * two[0] / n,
        one[2] + two[2] + difference * difference * one[0] * two[0] / n,
    )
