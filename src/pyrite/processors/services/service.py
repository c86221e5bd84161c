"""A service: how a client is made on each member, and how it is closed."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from pyrite.errors import InvalidDAG
from pyrite.functions import describe, is_async, shorten

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Service(Generic[C]):
    """How a client is made on each member, and how it is closed. Made with `pyrite.service`."""

    create: Callable[[], Any]
    close: Callable[[C], Any] | None = None

    @property
    def is_async(self) -> bool:
        """Whether the client must be made in an event loop."""
        create = self.create
        return (
            is_async(create)
            or (self.close is not None and is_async(self.close))
            or (isinstance(create, type) and hasattr(create, "__aenter__"))
        )

    def __repr__(self) -> str:
        return f"<Service {describe(self.create)}>"


@overload
def service(
    create: Callable[[], AbstractAsyncContextManager[C]], close: None = None
) -> Service[C]: ...
@overload
def service(create: Callable[[], AbstractContextManager[C]], close: None = None) -> Service[C]: ...
@overload
def service(
    create: Callable[[], Awaitable[C]], close: Callable[[C], object] | None = None
) -> Service[C]: ...
@overload
def service(create: Callable[[], C], close: Callable[[C], object] | None = None) -> Service[C]: ...
def service(
    create: Callable[[], Any], close: Callable[[Any], object] | None = None
) -> Service[Any]:
    """A client for `map_with` and `flat_map_with`: `create()` makes it, once on each member, and
    `close(client)` closes it at the end. Both may be async.

    Without `close`, the client is closed as a `with` or `async with` statement does if `create`
    returns a context manager; otherwise by its method `aclose` or `close`, if it has one.

    >>> from pyrite import Pipeline, service
    >>> capitals = service(lambda: {"NO": "Oslo"}, close=dict.clear)
    >>> Pipeline().read_from(["NO"]).map_with(capitals, dict.get).collect()
    ['Oslo']
    """
    if close is not None and not callable(close):
        raise InvalidDAG(f"close of service() must be a function; got {shorten(close)}")
    return Service(_checked("service", create), close)


def as_service(processor: str, given: Any) -> Service[Any]:
    """The service that the user gave to a step: a service, or a function or class that makes the
    client."""
    return given if isinstance(given, Service) else Service(_checked(processor, given))


def _checked(processor: str, create: Any) -> Callable[[], Any]:
    is_client = not isinstance(create, type) and _is_context(create)
    if is_client or not callable(create):
        raise InvalidDAG(
            f"{processor}() needs something that makes a client, because each member makes its "
            f"own: a function without arguments, a class, or pyrite.service(create, close); got "
            f"{shorten(create)}. If that is the client, pass a function that makes it"
        )
    if inspect.isgeneratorfunction(create) or inspect.isasyncgenfunction(create):
        decorator = "asynccontextmanager" if is_async(create) else "contextmanager"
        raise InvalidDAG(
            f"{processor}() needs something that makes a client, but {describe(create)} is a "
            f"generator; decorate it with @contextlib.{decorator}"
        )
    made: Callable[[], Any] = create
    return made


def _is_context(thing: Any) -> bool:
    return hasattr(type(thing), "__enter__") or hasattr(type(thing), "__aenter__")


@asynccontextmanager
async def opened(service: Service[Any]) -> AsyncIterator[Any]:
    """The client of a service, in an event loop; it is closed after the block."""
    made = service.create()
    if inspect.isawaitable(made):
        made = await made
    if service.close is None and hasattr(type(made), "__aenter__"):
        async with made as client:
            yield client
    elif service.close is None and hasattr(type(made), "__enter__"):
        with made as client:
            yield client
    else:
        try:
            yield made
        finally:
            await _awaited(_closing(service, made))


def _closing(service: Service[Any], client: Any) -> Any:
    """Closes a client that is no context manager, or returns what must be awaited for that."""
    if service.close is not None:
        return service.close(client)
    close = getattr(client, "aclose", None) or getattr(client, "close", None)
    return close() if callable(close) else None


async def _awaited(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made
