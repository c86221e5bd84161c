"""Steps that take one item at a time, and lists of items. They run where the items are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.errors import InvalidDAG
from pyrite.functions import is_async, shorten
from pyrite.pipeline.building import Options
from pyrite.pipeline.steps.point import Point
from pyrite.processors import selecting, transforms
from pyrite.processors.batching import Batch, Sample
from pyrite.processors.checks import checked_count, checked_function
from pyrite.processors.services.calling import map_async
from pyrite.retries import Retry
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.stage import Stage

T = TypeVar("T", covariant=True)
U = TypeVar("U")


class OneByOne(Point[T]):
    """Steps over local edges, most of which are fused."""

    __slots__ = ()

    @overload
    def map(
        self,
        fn: Callable[[T], Awaitable[U]],
        *,
        in_flight: int | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]: ...
    @overload
    def map(
        self,
        fn: Callable[[T], U],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]: ...
    def map(
        self,
        fn: Callable[[T], Any],
        *,
        in_flight: int | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[Any]:
        """Emits `fn(item)` for each item.

        If `fn` is an `async def`, it emits what `await fn(item)` returns, in the order of the
        items. Up to `in_flight` items, or 16, are awaited at the same time on each member. Give
        `in_flight` if `fn` is a plain function, such as a lambda, that returns something to await.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).map(lambda n: n * 10).collect()
        [10, 20]
        """
        options = Options(name, parallelism, on_error, retry)
        if in_flight is None and not is_async(fn):
            return self._locally("map", transforms.map(fn), options)
        step = map_async(fn, in_flight=16 if in_flight is None else in_flight)
        return self._locally("map", step, options)

    def filter(
        self,
        predicate: Callable[[T], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[T]:
        """Emits the items for which `predicate(item)` is true.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).filter(lambda n: n % 2).collect()
        [1, 3]
        """
        return self._locally(
            "filter", transforms.filter(predicate), Options(name, parallelism, on_error, retry)
        )

    def filter_map(
        self,
        fn: Callable[[T], U | None],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]:
        """Emits `fn(item)` for each item, except where it is None.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a", "b"]).filter_map({"a": 1}.get).collect()
        [1]
        """
        return self._locally(
            "filter_map", selecting.filter_map(fn), Options(name, parallelism, on_error, retry)
        )

    def flat_map(
        self,
        fn: Callable[[T], Iterable[U]],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]:
        """Emits all items of the iterable that `fn(item)` returns.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a b", "c"]).flat_map(str.split).collect()
        ['a', 'b', 'c']
        """
        return self._locally(
            "flat_map", transforms.flat_map(fn), Options(name, parallelism, on_error, retry)
        )

    def inspect(
        self,
        fn: Callable[[T], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[T]:
        """Calls `fn(item)` for each item, and emits the item.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2]).inspect(print).collect()
        1
        2
        [1, 2]
        """
        return self._locally(
            "inspect", selecting.inspect(fn), Options(name, parallelism, on_error, retry)
        )

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
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[U]:
        """Calls `fn` with lists of up to `size` items, and emits all items of what it returns.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from([1, 2, 3]).map_batches(lambda b: [sum(b)], size=2).collect()
        [3, 3]
        """
        batches = self._local_node(
            f"{name or 'map_batches'}-batch",
            Batch(checked_count("map_batches", "size", size, least=1)),
            Options(parallelism=parallelism),
        )
        step = transforms.flat_map(checked_function("map_batches", "fn", fn))
        inside = self._inside(batches, in_order=self._in_order)
        return inside._locally("map_batches", step, Options(name, parallelism, on_error, retry))

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
