"""Stage: the items at one point of a pipeline, and the steps that can follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from pyrite.dag import Edge
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.pipeline import agg, edges, run
from pyrite.pipeline.building import Options, in_two_steps, node_after
from pyrite.pipeline.compiling import compiled
from pyrite.pipeline.grouped import Grouped
from pyrite.pipeline.joins import broadcast_join, sides_by_key
from pyrite.pipeline.naming import name_of
from pyrite.pipeline.nodes import Inlet, Node
from pyrite.pipeline.where import users_line
from pyrite.processors import selecting, transforms
from pyrite.processors.aggregates import Aggregate
from pyrite.processors.aggregating import AllLocally, AllTotals, GroupLocally, GroupTotals
from pyrite.processors.batching import Batch, Sample
from pyrite.processors.chain import StepSupplier
from pyrite.processors.checks import checked_count, checked_function, checked_optional_function
from pyrite.processors.collections import write_list
from pyrite.processors.joining import HOWS, CoGroup, How, Join
from pyrite.processors.lookup import LookupJoin
from pyrite.processors.ordering import Limit, MergeSorted, SortLocally
from pyrite.processors.splitting import Split
from pyrite.processors.steps import Source

if TYPE_CHECKING:
    from pyrite.instance import Instance
    from pyrite.pipeline.pipeline import Pipeline

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
K = TypeVar("K")
P = ParamSpec("P")
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


class Stage(Generic[T]):
    """The items of type T at one point of a pipeline. It is immutable: each method returns another
    stage. A stage that is used twice is computed once.

    All steps take `name=`, the name of the vertex, and `parallelism=`, its processors per member.
    """

    __slots__ = ("_branch", "_in_order", "node", "pipeline")

    def __init__(
        self, pipeline: Pipeline, node: Node, *, branch: int = 0, in_order: bool = False
    ) -> None:
        self.pipeline = pipeline
        self.node = node
        self._branch = branch
        self._in_order = in_order
        pipeline._add_end(node, branch)

    # One item at a time.

    def map(
        self, fn: Callable[[T], U], *, name: str | None = None, parallelism: int | None = None
    ) -> Stage[U]:
        """Emits `fn(item)` for each item.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).map(lambda n: n * 10).collect()
        [10, 20]
        """
        return self._locally("map", transforms.map(fn), Options(name, parallelism))

    def filter(
        self,
        predicate: Callable[[T], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T]:
        """Emits the items for which `predicate(item)` is true.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).filter(lambda n: n % 2).collect()
        [1, 3]
        """
        return self._locally("filter", transforms.filter(predicate), Options(name, parallelism))

    def filter_map(
        self,
        fn: Callable[[T], U | None],
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[U]:
        """Emits `fn(item)` for each item, except where it is None.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a", "b"]).filter_map({"a": 1}.get).collect()
        [1]
        """
        return self._locally("filter_map", selecting.filter_map(fn), Options(name, parallelism))

    def flat_map(
        self,
        fn: Callable[[T], Iterable[U]],
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[U]:
        """Emits all items of the iterable that `fn(item)` returns.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a b", "c"]).flat_map(str.split).collect()
        ['a', 'b', 'c']
        """
        return self._locally("flat_map", transforms.flat_map(fn), Options(name, parallelism))

    def inspect(
        self, fn: Callable[[T], object], *, name: str | None = None, parallelism: int | None = None
    ) -> Stage[T]:
        """Calls `fn(item)` for each item, and emits the item.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).inspect(print).collect()
        1
        2
        [1, 2]
        """
        return self._locally("inspect", selecting.inspect(fn), Options(name, parallelism))

    def pipe(
        self,
        fn: Callable[Concatenate[Stage[T], P], U],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> U:
        """`fn(stage, *args)`: for steps of one's own, in the middle of a chain.

        >>> from pyrite import Pipeline
        >>> def larger(stage, than):
        ...     return stage.filter(lambda n: n > than)
        >>> Pipeline().read_from([1, 2, 3]).pipe(larger, 2).collect()
        [3]
        """
        return fn(self, *args, **kwargs)

    # Several stages, and where items go.

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
        inputs: list[tuple[Stage[Any], edges.Shape]] = [(self, edges.local)]
        inputs += [(other, edges.local) for other in others]
        node = node_after(inputs, "union", transforms.noop(), Options(name, parallelism))
        return Stage(self.pipeline, node)

    def rebalance(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T]:
        """Distributes the items over all processors of all members: evenly, or so that all items
        with the same key are at the same one.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).rebalance(lambda n: n % 2).collect()
        [1, 2]
        """
        checked_optional_function("rebalance", "key", key)
        shape = edges.anywhere if key is None else edges.partitioned_by(key)
        node = node_after(
            [(self, shape)], "rebalance", transforms.noop(), Options(name, parallelism)
        )
        return Stage(self.pipeline, node)

    def split(
        self,
        predicate: Callable[[T], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
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
            [(self, self.local_shape())], "split", supplier, Options(name, parallelism)
        )
        return (
            Stage(self.pipeline, node, branch=0, in_order=self._in_order),
            Stage(self.pipeline, node, branch=1, in_order=self._in_order),
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
    ) -> Stage[Any]:
        """Emits `(item, item of other)` for each match: where `left(item) == right(item of other)`.
        A key that is None never matches.

        `how="left"` also emits `(item, None)` for an item without a match, and `"full"` also
        `(None, item of other)`. `"semi"` emits each item that has a match, and `"anti"` each that
        has none. With `broadcast=True` each processor holds all of `other` in memory, and the items
        of this stage stay where they are: for a small `other`.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> orders = pipe.read_from([("ann", 3), ("bob", 4)])
        >>> countries = pipe.read_from([("ann", "NO")])
        >>> orders.join(countries, left=lambda o: o[0], right=lambda c: c[0], how="left").collect()
        [(('ann', 3), ('ann', 'NO')), (('bob', 4), None)]
        """
        options = Options(name, parallelism)
        checked_function("join", "left", left)
        checked_function("join", "right", right)
        if how not in HOWS:
            raise InvalidDAG(
                f"how of join() in {users_line()} must be one of {', '.join(HOWS)}; got "
                f"{shorten(how)}"
            )
        if broadcast:
            node = broadcast_join(self, other, LookupJoin(how, left, right), options)
        else:
            fold = Join(how, left, right)
            only_matches = (how in ("inner", "semi"), how != "full")
            node = sides_by_key(self, other, "join", (left, right), only_matches, fold, options)
        return Stage(self.pipeline, node)

    def co_group(
        self,
        other: Stage[U],
        *,
        left: Callable[[T], K],
        right: Callable[[U], K],
        name: str | None = None,
        parallelism: int | None = None,
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
        node = sides_by_key(
            self,
            other,
            "co_group",
            (left, right),
            (False, False),
            CoGroup(),
            Options(name, parallelism),
        )
        return Stage(self.pipeline, node)

    def process(
        self,
        supplier: Any,
        *others: Stage[Any],
        edge: Callable[[Edge], Edge] | None = None,
        name: str | None = None,
        parallelism: int | None = None,
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
        shape = edge or self.local_shape()
        inputs: list[tuple[Stage[Any], edges.Shape]] = [(stage, shape) for stage in (self, *others)]
        node = node_after(inputs, name_of(supplier), supplier, Options(name, parallelism))
        return Stage(self.pipeline, node)

    # Lists of items.

    def batch(
        self, size: int, *, name: str | None = None, parallelism: int | None = None
    ) -> Stage[list[T]]:
        """Emits the items in lists of `size`. The last list of each processor may be shorter.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).batch(2).collect()
        [[1, 2], [3]]
        """
        supplier = Batch(checked_count("batch", "size", size, least=1))
        return self._locally("batch", supplier, Options(name, parallelism))

    def map_batches(
        self,
        fn: Callable[[list[T]], Iterable[U]],
        *,
        size: int = 1024,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[U]:
        """Calls `fn` with lists of up to `size` items, and emits all items of what it returns.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).map_batches(lambda b: [sum(b)], size=2).collect()
        [3, 3]
        """
        batches: Stage[list[T]] = self._locally(
            f"{name or 'map_batches'}-batch",
            Batch(checked_count("map_batches", "size", size, least=1)),
            Options(parallelism=parallelism),
        )
        step = transforms.flat_map(checked_function("map_batches", "fn", fn))
        return batches._locally("map_batches", step, Options(name, parallelism))

    def sample(
        self,
        fraction: float,
        seed: int = 0,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T]:
        """Emits each item with the probability `fraction`. Which ones depends on the seed, on the
        number of members, and on the order of the items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(range(10)).sample(0.5, seed=1).collect()
        [1, 2, 3, 7]
        """
        if not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise InvalidDAG(
                f"fraction of sample() in {users_line()} must be a number from 0 to 1; got "
                f"{shorten(fraction)}"
            )
        return self._locally("sample", Sample(fraction, seed), Options(name, parallelism))

    # All items, or all of a key.

    def group_by(self, key: Callable[[T], K]) -> Grouped[K, T]:
        """Groups of the items with the same key. Items whose key is None are a group, too.

        >>> from pyrite import Pipeline
        >>> sorted(Pipeline().read_from("abcab").group_by(str.upper).count().collect())
        [('A', 2), ('B', 2), ('C', 1)]
        """
        return Grouped(self, checked_function("group_by", "key", key))

    def distinct(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T]:
        """One of the items with the same key; without `key`, one of equal items.

        >>> from pyrite import Pipeline
        >>> sorted(Pipeline().read_from([3, 1, 3]).distinct().collect())
        [1, 3]
        """
        checked_optional_function("distinct", "key", key)
        one: tuple[Aggregate[Any, Any, Any], ...] = (Aggregate(_nothing, _first_item, _first_item),)
        return self._combined(
            "distinct",
            GroupLocally(key or _itself, one),
            edges.by_key,
            GroupTotals(one, keys=False),
            Options(name, parallelism),
        )

    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[A1]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        a6: Aggregate[T, Any, A6],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        a6: Aggregate[T, Any, A6],
        a7: Aggregate[T, Any, A7],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        a6: Aggregate[T, Any, A6],
        a7: Aggregate[T, Any, A7],
        a8: Aggregate[T, Any, A8],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        a6: Aggregate[T, Any, A6],
        a7: Aggregate[T, Any, A7],
        a8: Aggregate[T, Any, A8],
        a9: Aggregate[T, Any, A9],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8, A9]]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregate[T, Any, A1],
        a2: Aggregate[T, Any, A2],
        a3: Aggregate[T, Any, A3],
        a4: Aggregate[T, Any, A4],
        a5: Aggregate[T, Any, A5],
        a6: Aggregate[T, Any, A6],
        a7: Aggregate[T, Any, A7],
        a8: Aggregate[T, Any, A8],
        a9: Aggregate[T, Any, A9],
        a10: Aggregate[T, Any, A10],
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[tuple[A1, A2, A3, A4, A5, A6, A7, A8, A9, A10]]: ...
    def aggregate(
        self,
        *aggregates: Aggregate[Any, Any, Any],
        name: str | None = None,
        parallelism: int | None = None,
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
            "aggregate", agg.checked(aggregates, "aggregate"), Options(name, parallelism)
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
    ) -> Stage[T]:
        """Emits the items reduced to one with `fn(item, item)`, in any order; nothing if there are
        no items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).reduce(lambda a, b: a + b).collect()
        [6]
        """
        return self._aggregated("reduce", (agg.reduce(fn),), Options(name, parallelism))

    def top(
        self,
        n: int,
        key: Callable[[T], Any] | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
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
            Options(name, parallelism),
            in_order=True,
        )

    def sort(
        self,
        key: Callable[[T], Any] | None = None,
        *,
        reverse: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stage[T]:
        """Emits the items in order. One processor holds them all. The order is kept until items are
        exchanged between processors again.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["bcd", "a", "ef"]).sort(key=len).map(str.upper).collect()
        ['A', 'EF', 'BCD']
        """
        checked_optional_function("sort", "key", key)
        return self._combined(
            "sort",
            SortLocally(key, reverse),
            edges.all_to_one,
            MergeSorted(key, reverse),
            Options(name, parallelism),
            in_order=True,
        )

    def limit(self, n: int, *, name: str | None = None, parallelism: int | None = None) -> Stage[T]:
        """Emits any `n` items. Sources that lead to it only over steps of one item at a time are
        not read any further.

        >>> from pyrite import Pipeline
        >>> import itertools
        >>> Pipeline().read_from(itertools.count()).filter(lambda n: n % 2).limit(2).collect()
        [1, 3]
        """
        limit = Limit(checked_count("limit", "n", n))
        return self._combined("limit", limit, edges.all_to_one, limit, Options(name, parallelism))

    # Ends.

    def write_to(
        self, sink: Any, *, name: str | None = None, parallelism: int | None = None
    ) -> None:
        """Writes the items to a sink, such as `p.write_files(...)`.

        >>> from pyrite import Pipeline, instance
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> pipe.read_from([1, 2]).write_to(p.write_list("numbers"))
        >>> with instance() as pyr:
        ...     pyr.new_light_job(pipe).execute().result()
        ...     list(pyr.list("numbers"))
        [1, 2]
        """
        if isinstance(sink, StepSupplier) and isinstance(sink.step, Source):
            raise InvalidDAG(
                f"write_to in {users_line()} needs a sink, but {name_of(sink)} is a source"
            )
        if not callable(sink) and not callable(getattr(sink, "get", None)):
            raise InvalidDAG(
                f"write_to in {users_line()} needs a sink, such as p.write_files(...); got "
                f"{shorten(sink)}"
            )
        self.pipeline._add_sink(
            node_after(
                [(self, self.local_shape())], name_of(sink), sink, Options(name, parallelism)
            )
        )

    def collect(self, on: Instance | None = None) -> list[T]:
        """Runs what leads to this stage, as a light job in this process or as a normal job of the
        instance `on`, and returns its items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from("abc").collect()
        ['a', 'b', 'c']
        """
        name = run.new_list_name()
        sink = node_after([(self, self.local_shape())], "collect", write_list(name), Options())
        items: list[T] = run.collected(compiled([sink]), name, on)
        self.pipeline._add_collected(sink)
        return items

    def inlet(self, shape: edges.Shape) -> Inlet:
        """What a node reads that reads this stage over an edge of that shape."""
        return Inlet(self.node, shape, self._branch)

    def local_shape(self) -> edges.Shape:
        """The edge of a step that may run on any processor of the same member."""
        return edges.side_by_side if self._in_order else edges.local

    def _locally(self, name: str, supplier: Any, options: Options) -> Stage[Any]:
        node = node_after([(self, self.local_shape())], name, supplier, options)
        return Stage(self.pipeline, node, in_order=self._in_order)

    def _combined(
        self,
        name: str,
        first: Any,
        shape: edges.Shape,
        second: Any,
        options: Options,
        *,
        in_order: bool = False,
    ) -> Stage[Any]:
        node = in_two_steps(self, name, first, shape, second, options)
        return Stage(self.pipeline, node, in_order=in_order)

    def _aggregated(
        self, name: str, aggregates: tuple[Aggregate[Any, Any, Any], ...], options: Options
    ) -> Stage[Any]:
        return self._combined(
            name, AllLocally(aggregates), edges.all_to_one, AllTotals(aggregates), options
        )

    def __repr__(self) -> str:
        return f"<Stage '{self.node.name}', {self.node.where}>"


def _itself(item: Any) -> Any:
    return item


def _nothing() -> None:
    return None


def _first_item(first: Any, item: Any) -> Any:
    return item if first is None else first
