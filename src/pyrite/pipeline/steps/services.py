"""Steps that use a client, such as a connection to a database or an HTTP session."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.pipeline.building import Options
from pyrite.pipeline.steps.point import Point
from pyrite.processors.services import calling
from pyrite.processors.services.service import Service
from pyrite.retries import Retry

if TYPE_CHECKING:
    from pyrite.pipeline.stage import Stage

T = TypeVar("T", covariant=True)
U = TypeVar("U")
C = TypeVar("C")
M = TypeVar("M", covariant=True)
Many: TypeAlias = Iterable[U] | Awaitable[Iterable[U]] | AsyncIterable[U]


class Makes(Protocol[M]):
    """A function or class that makes something. mypy looks at a protocol before it looks at `fn`,
    so that it knows the type of the client in a lambda; of two callables it would know neither."""

    def __call__(self) -> M: ...


class CallOptions(TypedDict, total=False):
    """What the user may say about a step that uses a client."""

    in_flight: int
    name: str | None
    parallelism: int | None
    on_error: ErrorPolicy
    retry: Retry | None


class WithServices(Point[T]):
    """Steps over local edges, with a client for each member."""

    __slots__ = ()

    @overload
    def map_with(
        self,
        service: Service[C],
        fn: Callable[[C, T], Awaitable[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Service[C],
        fn: Callable[[C, T], U],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[AbstractAsyncContextManager[C]],
        fn: Callable[[C, T], Awaitable[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[AbstractAsyncContextManager[C]],
        fn: Callable[[C, T], U],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[AbstractContextManager[C]],
        fn: Callable[[C, T], Awaitable[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[AbstractContextManager[C]],
        fn: Callable[[C, T], U],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[Awaitable[C]],
        fn: Callable[[C, T], Awaitable[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[Awaitable[C]],
        fn: Callable[[C, T], U],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[C],
        fn: Callable[[C, T], Awaitable[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def map_with(
        self,
        service: Makes[C],
        fn: Callable[[C, T], U],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    def map_with(
        self,
        service: Any,
        fn: Callable[[Any, T], Any],
        *,
        in_flight: int = 16,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[Any]:
        """Emits `fn(client, item)` for each item, in the order of the items. `service` makes the
        client, once on each member, and closes it at the end: a function or a class that makes a
        client or a context manager, or `pyrite.service(create, close)`.

        If the service or `fn` is async, up to `in_flight` items are awaited at the same time on
        each member. Otherwise one thread on each member makes and uses the client, one item at a
        time.

        >>> from pyrite import Pipeline
        >>> import contextlib, sqlite3
        >>> def database():
        ...     return contextlib.closing(sqlite3.connect(":memory:"))
        >>> def doubled(db, n):
        ...     return db.execute("select 2 * ?", (n,)).fetchone()[0]
        >>> Pipeline().read_from([1, 2]).map_with(database, doubled).collect()
        [2, 4]
        """
        supplier = calling.map_with(service, fn, in_flight=in_flight)
        return self._locally("map_with", supplier, Options(name, parallelism, on_error, retry))

    @overload
    def flat_map_with(
        self,
        service: Service[C],
        fn: Callable[[C, T], Many[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def flat_map_with(
        self,
        service: Makes[AbstractAsyncContextManager[C]],
        fn: Callable[[C, T], Many[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def flat_map_with(
        self,
        service: Makes[AbstractContextManager[C]],
        fn: Callable[[C, T], Many[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def flat_map_with(
        self,
        service: Makes[Awaitable[C]],
        fn: Callable[[C, T], Many[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    @overload
    def flat_map_with(
        self,
        service: Makes[C],
        fn: Callable[[C, T], Many[U]],
        **options: Unpack[CallOptions],
    ) -> Stage[U]: ...
    def flat_map_with(
        self,
        service: Any,
        fn: Callable[[Any, T], Any],
        *,
        in_flight: int = 16,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Stage[Any]:
        """Emits all items of what `fn(client, item)` returns, with a client as in `map_with`. `fn`
        may be an async generator. It is taken piece by piece, as the steps that follow take it.
        With `on_error` or `retry`, all that is made of an item is held in memory.

        >>> from pyrite import Pipeline
        >>> rows = {"a": [1, 2], "b": [3]}
        >>> Pipeline().read_from("ab").flat_map_with(lambda: rows, dict.get).collect()
        [1, 2, 3]
        """
        supplier = calling.flat_map_with(service, fn, in_flight=in_flight)
        return self._locally("flat_map_with", supplier, Options(name, parallelism, on_error, retry))
