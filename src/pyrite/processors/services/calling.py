"""map_async, map_with and flat_map_with. Their processors have many calls in flight, keep the order
of the items, and never block the engine."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.bad_records import Handler
from pyrite.boxes import Inbox, holds_none, none_emitted
from pyrite.context import ProcessorContext, SupplierContext
from pyrite.errors import InvalidDAG
from pyrite.functions import describe
from pyrite.processor import FailedAt, HandlesErrors, Processor
from pyrite.processors.checks import checked_count, checked_function
from pyrite.processors.services.calls import Calls
from pyrite.processors.services.service import as_service
from pyrite.processors.services.window import Call, Window
from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier

if TYPE_CHECKING:
    from pyrite.processors.services.caller import Caller


def map_async(fn: Callable[[Any], Awaitable[Any]], *, in_flight: int = 16) -> CallSupplier:
    """Emits what `await fn(item)` returns for each item, in the order of the items. Up to
    `in_flight` items are awaited at the same time on each member.

    >>> from pyrite import Pipeline, processors as p
    >>> async def doubled(n):
    ...     return 2 * n
    >>> Pipeline().read_from([1, 2]).process(p.map_async(doubled)).collect()
    [2, 4]
    """
    return _supplier("map_async", Calls(fn, None, in_flight, spreads=False))


def map_with(service: Any, fn: Callable[[Any, Any], Any], *, in_flight: int = 16) -> CallSupplier:
    """Emits `fn(client, item)` for each item, in the order of the items. The service makes the
    client once on each member, and closes it at the end. If `fn` is async, or returns something to
    await, up to `in_flight` items are awaited at the same time on each member.

    >>> from pyrite import Pipeline, processors as p
    >>> capitals = p.map_with(lambda: {"NO": "Oslo", "SE": "Stockholm"}, dict.get)
    >>> Pipeline().read_from(["SE", "NO"]).process(capitals).collect()
    ['Stockholm', 'Oslo']
    """
    calls = Calls(fn, as_service("map_with", service), in_flight, spreads=False)
    return _supplier("map_with", calls)


def flat_map_with(
    service: Any,
    fn: Callable[[Any, Any], Iterable[Any] | Awaitable[Iterable[Any]] | AsyncIterable[Any]],
    *,
    in_flight: int = 16,
) -> CallSupplier:
    """Emits all items of what `fn(client, item)` returns, which may be an async iterable. It is
    taken piece by piece, as the steps that follow take it; with `on_error` or `retry`, all that is
    made of an item is held in memory. The service makes the client once on each member, and closes
    it at the end.

    >>> from pyrite import Pipeline, processors as p
    >>> children = p.flat_map_with(lambda: {"ann": ["bo", "cy"], "bo": []}, dict.get)
    >>> Pipeline().read_from(["ann", "bo"]).process(children).collect()
    ['bo', 'cy']
    """
    calls = Calls(fn, as_service("flat_map_with", service), in_flight, spreads=True)
    return _supplier("flat_map_with", calls)


def _supplier(name: str, calls: Calls) -> CallSupplier:
    checked_function(name, "fn", calls.function, may_be_async=True)
    checked_count(name, "in_flight", calls.in_flight, least=1)
    if not calls.spreads and inspect.isasyncgenfunction(calls.function):
        raise InvalidDAG(
            f"fn of {name}() must return one value for each item, but "
            f"{describe(calls.function)} is an async generator; use flat_map_with()"
        )
    return CallSupplier(calls)


@dataclass(frozen=True, slots=True)
class CallSupplier(ProcessorMetaSupplier):
    """Makes the processors of a vertex that calls something for each item."""

    calls: Calls

    def get(self, addresses: Sequence[str]) -> Sequence[ProcessorSupplier]:
        return [_OnMember(self.calls) for _ in addresses]


class _OnMember(ProcessorSupplier):
    """Has the client of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._caller: Caller | None = None
        self._processors: list[CallProcessor] = []

    def init(self, context: SupplierContext) -> None:
        from pyrite.processors.services.caller import Caller  # asyncio takes 40 ms to import

        self._caller = Caller(self._calls)
        self._caller.open(context)

    def get(self, count: int) -> Sequence[Processor]:
        assert self._caller is not None
        self._processors = [CallProcessor(self._calls, self._caller) for _ in range(count)]
        return self._processors

    def complete(self) -> None:
        assert self._caller is not None
        for processor in self._processors:
            processor.close(None)  # after a limit, calls are left that nobody needs
        self._caller.complete()

    def close(self, error: BaseException | None) -> None:
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.close(error)


class CallProcessor(HandlesErrors):
    """Starts calls for its items, and emits what they return, in the order of the items."""

    def __init__(self, calls: Calls, caller: Caller) -> None:
        self._calls = calls
        self._caller = caller
        self._window = Window(calls.in_flight, self._tell)
        self._rest: list[Any] = []
        """What the last call has made and is not emitted yet."""
        self._is_begun = False
        """Whether the first call in the window has made some of its results, and not all."""
        self._failed: Call | None = None
        self._at_work: Any = None
        self._is_told = False
        self._came = threading.Event()
        self._handler: Handler | None = None

    def handle_errors(self, handlers: Sequence[Handler | None]) -> None:
        (self._handler,) = handlers

    def init(self, context: ProcessorContext) -> None:
        self._vertex = context.vertex_name
        self._wake = context.wake
        self._waits = context.must_repeat
        """Whether to wait for results: a task that is run again must emit the same in the same
        calls, however long the requests take."""
        self._stopped: list[bool] = context.once(("stop", self._vertex), list)
        """Has an element as soon as nobody needs the results any more."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        if self._stopped:
            inbox.drain()
            return
        self._emit_what_is_there()
        items = inbox.pending()
        taken = 0
        while taken < len(items) and not self.outbox.is_full():
            if not self._window.room:
                if not self._waits:
                    break
                self._emit(calls=1)
            some = items[taken : taken + self._window.room]
            self._start(some)
            taken += len(some)
        inbox.remove(taken)

    def try_process(self) -> bool:
        if not self._stopped:
            self._emit_what_is_there()
        return True

    def complete(self) -> bool:
        if self._stopped:
            return True
        self._emit_what_is_there()
        while self._waits and self._window and not self.outbox.is_full():
            self._emit(calls=1)
        return not self._window and not self._rest

    def close(self, error: BaseException | None) -> None:
        self._caller.cancel(self._window)

    @property
    def is_waiting(self) -> bool:
        first = self._window.first
        return (
            first is not None and not first.is_done and self._failed is None and not self._stopped
        )

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(self._at_work, self._vertex)

    # The state: items whose results are not emitted. They are called again where it is restored.

    @property
    def can_save(self) -> bool:
        # A call that is made again may make other results.
        return not self._is_begun or bool(self._stopped)

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        rest = [("made", self._rest)] if self._rest else []
        return [*rest, *(("item", call.item) for call in self._window)]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        if key == "made":
            self._rest = value
        else:
            self._start([value])

    def _start(self, items: list[Any]) -> None:
        calls = self._window.add(items)
        if self._handler is None:
            self._caller.start(calls)
        else:
            self._caller.start(calls, self._handler.seconds)

    # Results

    def _tell(self, call: Call) -> None:
        """Called on another thread, when a call is done."""
        if call.error is not None and self._failed is None and not self._goes_on_after(call.error):
            self._failed = call
        first = self._window.first
        # Results before which another one is missing cannot be emitted yet.
        if first is None or first.is_done or self._failed is not None:
            self._came.set()
            if not self._is_told:
                self._is_told = True
                self._wake()

    def _emit_what_is_there(self) -> None:
        self._is_told = False  # before it looks, so that nothing that comes now is missed
        self._emit(calls=0 if self._waits else len(self._window))

    def _emit(self, *, calls: int) -> None:
        """Emits the results of up to so many calls that are done, as far as there is room, and of
        one that is begun."""
        items: list[Any] = []
        room = self.outbox.room()
        try:
            self._check_failed()
            while len(items) < room:
                if not self._rest:
                    if not calls and not self._is_begun:
                        break
                    if self._waits:
                        self._wait()
                    call = self._window.first
                    if call is None or not call.is_done:
                        break
                    self._rest = self._results(call)
                    self._is_begun = call.rest is not None
                    if self._is_begun:
                        self._caller.go_on(call)
                    else:
                        self._window.take()
                        calls -= 1
                fitting = room - len(items)
                items += self._rest[:fitting]
                self._rest = self._rest[fitting:]
        finally:
            self.outbox.add_all(items)

    def _wait(self) -> None:
        """Waits for the next results of the first call."""
        first = self._window.first
        while self._failed is None and first is not None and not first.is_done:
            self._came.wait()
            self._came.clear()
        self._check_failed()

    def _check_failed(self) -> None:
        """If any call has failed, the job fails at once: a call before it may take long."""
        if self._failed is not None:
            self._results(self._failed)

    def _goes_on_after(self, error: BaseException) -> bool:
        handler = self._handler
        return handler is not None and not handler.fails and isinstance(error, Exception)

    def _results(self, call: Call) -> list[Any]:
        """What a call has made of its item. This alone decides what becomes of an item whose call
        has failed."""
        self._at_work = call.item
        try:
            return self._checked_results(call)
        except Exception as error:
            if self._handler is None or not self._goes_on_after(error):
                raise
            self._handler(call.item, error)
            return []

    def _checked_results(self, call: Call) -> list[Any]:
        if call.error is not None:
            raise call.error
        made: list[Any] = call.made if self._calls.spreads else [call.made]
        if holds_none(made):
            raise none_emitted(self._vertex, f", which {describe(self._calls.function)} returned")
        return made
