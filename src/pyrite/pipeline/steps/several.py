"""Steps that read several stages, make several, or choose where items go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.dag import Edge
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.pipeline import edges
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.joins import co_group, hash_join
from pyrite.pipeline.naming import name_of
from pyrite.pipeline.steps.point import Point
from pyrite.processors import transforms
from pyrite.processors.checks import checked_function, checked_optional_function
from pyrite.processors.joins.hash_join import HOWS, HashJoin, How
from pyrite.processors.splitting import Split
from pyrite.retries import Retry
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.stage import Stage

T = TypeVar("T", covariant=True)
U = TypeVar("U")
V = TypeVar("V")
K = TypeVar("K")


class Several(Point[T]):
    """Unions, splits, joins, and processors of one's own."""

    __slots__ = ()

    @overload
    def union(
        self, other: Stage[U], /, *, name: str | None = None, parallelism: int | None = None
    ) -> Stage[T | U]: ...
    @overload
    def union(
        self,
        other: Stage[U],
        third: Stage[V],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T | U | V]: ...
    @overload
    def union(
        self, *others: Stage[U], name: str | None = None, parallelism: int | None = None
    ) -> Stage[T | U]: ...
    def union(
        self, *others: Stage[Any], name: str | None = None, parallelism: int | None = None
    ) -> Stage[Any]:
        """The items of all these stages.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> sorted(pipe.read_from([1, 2]).union(pipe.read_from([2, 3])).collect())
        [1, 2, 2, 3]
        """
        inputs: list[tuple[Point[Any], edges.Shape]] = [(self, edges.local)]
        inputs += [(other, edges.local) for other in others]
        node = node_after(inputs, "union", transforms.noop(), Options(name, parallelism))
        return self._stage(node)

    def rebalance(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]:
        """Distributes the items over all processors of all members: evenly, or so that all items
        with the same key are at the same one.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).rebalance(lambda n: n % 2).collect()
        [1, 2]
        """
        checked_optional_function("rebalance", "key", key)
        options = Options(name, parallelism, on_error)
        before = self._checked("rebalance", key and edges.ValidKey(key), options)
        shape = edges.anywhere if key is None else edges.partitioned_by(key)
        node = node_after(
            [(before, shape)], "rebalance", transforms.noop(), Options(name, parallelism)
        )
        return self._stage(node)

    def split(
        self,
        predicate: Callable[[T], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> tuple[Stage[T], Stage[T]]:
        """Two stages: with the items for which `predicate(item)` is true, and with the others. It
        is called once for each item.

        >>> from pyrite import Pipeline
        >>> odd, even = Pipeline().read_from([1, 2, 3]).split(lambda n: n % 2)
        >>> odd.collect(), even.collect()
        ([1, 3], [2])
        """
        supplier = Split(checked_function("split", "predicate", predicate))
        node = node_after(
            [(self, self._local_shape())],
            "split",
            supplier,
            Options(name, parallelism, on_error, retry),
        )
        return (
            self._stage(node, branch=0, in_order=self._in_order),
            self._stage(node, branch=1, in_order=self._in_order),
        )

    @overload
    def join(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], Any],
        right: Callable[[U], Any],
        how: Literal["inner"] = "inner",
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[T, U]]: ...
    @overload
    def join(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], Any],
        right: Callable[[U], Any],
        how: Literal["left"],
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[T, U | None]]: ...
    @overload
    def join(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], Any],
        right: Callable[[U], Any],
        how: Literal["full"],
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[T | None, U | None]]: ...
    @overload
    def join(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], Any],
        right: Callable[[U], Any],
        how: Literal["semi", "anti"],
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]: ...
    def join(
        self,
        other: Stage[Any],
        *,
        left: Callable[[Any], Any],
        right: Callable[[Any], Any],
        how: How = "inner",
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[Any]:
        """Emits `(item, item of other)` for each match: where `left(item) == right(item of other)`.
        A key that is None never matches.

        `how="left"` also emits `(item, None)` for an item without a match, and `"full"` also
        `(None, item of other)`. `"semi"` emits each item that has a match, and `"anti"` each that
        has none. The items of `other` are held in memory, on Spark one partition at a time, so let
        it be the smaller side. With `broadcast=True` each processor holds all of `other`, and the
        items of this stage stay where they are: for a small `other`.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> orders = pipe.read_from([("ann", 3), ("bob", 4)])
        >>> countries = pipe.read_from([("ann", "NO")])
        >>> orders.join(countries, left=lambda o: o[0], right=lambda c: c[0], how="left").collect()
        [(('ann', 3), ('ann', 'NO')), (('bob', 4), None)]
        """
        options = Options(name, parallelism, on_error)
        checked_function("join", "left", left)
        checked_function("join", "right", right)
        if how not in HOWS:
            raise InvalidDAG(
                f"how of join() in {users_line()} must be one of {', '.join(HOWS)}; got "
                f"{shorten(how)}"
            )
        join = HashJoin(how, left, right)
        return self._stage(hash_join(self, other, join, options, broadcast=broadcast))

    def co_group(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], K],
        right: Callable[[U], K],
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[tuple[K, list[T], list[U]]]:
        """Emits `(key, items, items of other)` for each key of either stage.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> words, numbers = pipe.read_from(["a", "bc"]), pipe.read_from([2, 2])
        >>> sorted(words.co_group(numbers, left=len, right=lambda n: n).collect())
        [(1, ['a'], []), (2, ['bc'], [2, 2])]
        """
        checked_function("co_group", "left", left)
        checked_function("co_group", "right", right)
        return self._stage(
            co_group(self, other, (left, right), Options(name, parallelism, on_error))
        )

    def process(
        self,
        supplier: Any,
        *others: Stage[Any],
        edge: Callable[[Edge], Edge] | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[Any]:
        """Passes the items to a processor of one's own. It gets this stage at ordinal 0, and the
        others at ordinals 1, 2, and so on. `edge` sets how the items travel to it.

        >>> from pyrite import AbstractProcessor, Pipeline
        >>> class Twice(AbstractProcessor):
        ...     def try_process_0(self, item):
        ...         self.emit(item)
        ...         self.emit(item)
        >>> numbers = Pipeline().read_from([1, 2])
        >>> numbers.process(Twice, edge=lambda edge: edge.partitioned()).collect()
        [1, 1, 2, 2]
        """
        shape = edge or self._local_shape()
        inputs: list[tuple[Point[Any], edges.Shape]] = [(stage, shape) for stage in (self, *others)]
        node = node_after(
            inputs, name_of(supplier), supplier, Options(name, parallelism, on_error, retry)
        )
        return self._stage(node)
