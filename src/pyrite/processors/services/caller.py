"""Makes the calls of one vertex on one member, in an event loop: it makes the client there, calls
the user's function with it, and closes it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import AsyncGeneratorType, CoroutineType, FrameType
from typing import Any, Final, TypeAlias, TypeVar

from pyrite.context import SupplierContext
from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten
from pyrite.processors.services import pieces
from pyrite.processors.services.calls import Calls
from pyrite.processors.services.event_loop import PATIENCE, Loops, OwnLoop, shared_loop
from pyrite.processors.services.service import Service, opened
from pyrite.processors.services.window import Call
from pyrite.whereabouts import Whereabouts, found_in

logger = logging.getLogger("pyrite.services")

T = TypeVar("T")
SecondsToWait: TypeAlias = Callable[[BaseException, int], float | None]
"""How long to wait before a call is tried again, after an error and so many failures; None if it is
not."""

LOOK_SECONDS: Final = 0.05
"""How often to look whether the job was cancelled while a client is made."""


class Caller:
    """Async calls share the loop of the process. A service that is not async has a thread of its
    own, where its client is made, used and closed: calls may block, and many clients may be used by
    one thread only."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._loops: Loops | None = None
        self._call: Callable[[Any], Any] = calls.function
        self._patience = PATIENCE
        self._slots = asyncio.Semaphore(calls.in_flight)
        self._closing: asyncio.Future[BaseException | None] | None = None
        self._client: concurrent.futures.Future[BaseException | None] | None = None

    def open(self, context: SupplierContext) -> None:
        """Makes the client, and waits for it, unless the job is cancelled. Raises what the user's
        code raises."""
        name = context.vertex_name
        loops: Loops = shared_loop if self._calls.is_async else OwnLoop(f"pyrite-service-{name}")
        self._loop = loops.acquire()
        self._loops = loops
        self._vertex = name
        job = context.log_name or context.job_name
        self.whereabouts = Whereabouts(job, context.execution_id, name)
        self._is_cancelled = context.is_cancelled
        if self._calls.service is None:
            return
        is_open: concurrent.futures.Future[None] = concurrent.futures.Future()
        client = asyncio.run_coroutine_threadsafe(
            self._hold_client(self._calls.service, is_open), self._loop
        )
        either: list[concurrent.futures.Future[Any]] = [is_open, client]
        while not concurrent.futures.wait(
            either, LOOK_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
        ).done:
            if context.is_cancelled():
                client.cancel()
                return
        if not is_open.done():
            raise client.result() or AssertionError("internal error: a client was not held")
        self._client = client

    async def _hold_client(
        self, service: Service[Any], is_open: concurrent.futures.Future[None]
    ) -> BaseException | None:
        """Makes the client and, when that is asked for, closes it: some clients require that the
        same task does both. Returns what the user's code raises: the loop would end with a
        KeyboardInterrupt or a SystemExit."""
        self._closing = asyncio.get_running_loop().create_future()
        try:
            async with opened(service) as client:
                function = self._calls.function
                self._call = lambda item: function(client, item)
                is_open.set_result(None)
                error = await self._closing
                if error is not None:
                    raise error
        except asyncio.CancelledError:
            raise
        except BaseException as raised:
            return raised
        return None

    def start(self, calls: Iterable[Call], seconds: SecondsToWait | None = None) -> None:
        """Begins calls. With `seconds`, those that fail are tried again, and what one makes counts
        whole or not at all. Otherwise it may come in pieces: `go_on` asks for the next."""
        self._loop.call_soon_threadsafe(self._begin, calls, seconds)

    def _begin(self, calls: Iterable[Call], seconds: SecondsToWait | None) -> None:
        for call in calls:
            if call.is_cancelled:
                continue
            try:
                made = self._call(call.item)
                if _is_awaited(made, self._calls.spreads):
                    call.awaited = made
                    call.task = self._loop.create_task(self._finish(call, made, seconds))
                    continue
                self._receive(call, made, is_whole=seconds is not None)
            except BaseException as error:
                self._failed(call, error, seconds)
            else:
                call.end()

    def go_on(self, call: Call) -> None:
        """Makes the next piece."""
        call.is_done = False
        self._loop.call_soon_threadsafe(self._make_more, call)

    def _make_more(self, call: Call) -> None:
        if call.is_cancelled:
            return
        if call.wanted is not None:
            call.wanted.set()
            return
        try:
            pieces.take(call, is_whole=False)
        except BaseException as error:
            self._failed(call, error, None)
        else:
            call.end()

    def _failed(self, call: Call, error: BaseException, seconds: SecondsToWait | None) -> None:
        call.failures += 1
        call.rest = None
        try:
            wait = None if seconds is None or call.is_cancelled else seconds(error, call.failures)
        except BaseException as raised:
            wait, error = None, raised
        if wait is None:
            call.error = error
            call.end()
        else:
            self._loop.call_later(wait, self._begin, [call], seconds)

    async def _finish(self, call: Call, made: Any, seconds: SecondsToWait | None) -> None:
        # No error may leave the task: the loop would end with a KeyboardInterrupt or SystemExit.
        try:
            spreads, is_whole = self._calls.spreads, seconds is not None
            if not (spreads and _is_async_iterable(made)):
                async with self._slots:
                    made = await made
            if spreads and _is_async_iterable(made):
                await self._spread(call, made, is_whole=is_whole)
            else:
                self._receive(call, made, is_whole=is_whole)
        except BaseException as error:
            call.task = None
            is_own = isinstance(error, asyncio.CancelledError) and not call.is_cancelled
            self._failed(call, self._cancelled_itself(error) if is_own else error, seconds)
            return
        call.task = None
        call.end()

    async def _spread(self, call: Call, made: Any, *, is_whole: bool) -> None:
        """Takes all from an async iterable. One task does so, as some clients require; between two
        pieces it is not in flight."""
        call.rest = iterator = aiter(made)
        call.wanted = asyncio.Event()
        try:
            while True:
                async with self._slots:
                    await pieces.take_later(call, is_whole=is_whole)
                if call.rest is None:
                    return
                call.wanted.clear()
                call.end()
                await call.wanted.wait()
        finally:
            call.wanted = None
            if type(iterator) is AsyncGeneratorType:  # others may be used again
                await iterator.aclose()

    def _receive(self, call: Call, made: Any, *, is_whole: bool) -> None:
        """Takes what the function has returned for an item."""
        if not self._calls.spreads:
            call.made = self._one(made)
        elif type(made) is list:
            call.made = made.copy()
        else:
            call.rest = self._iterated(made)
            pieces.take(call, is_whole=is_whole)

    def _one(self, made: Any) -> Any:
        if type(made) is AsyncGeneratorType:
            raise ProcessorError(
                f"return value of {describe(self._calls.function)} must be one value, but it is an "
                "async generator; use flat_map_with()"
            )
        return made

    def _iterated(self, made: Any) -> Iterator[Any]:
        if not hasattr(type(made), "__iter__"):
            raise ProcessorError(
                f"return value of {describe(self._calls.function)} must be an iterable; got "
                f"{shorten(made)}"
            )
        return iter(made)

    def _cancelled_itself(self, error: BaseException) -> ProcessorError:
        failed = ProcessorError(
            f"{describe(self._calls.function)} raised asyncio.CancelledError, although the job was "
            "not cancelled: something that it awaits was cancelled"
        )
        failed.__cause__ = error
        return failed

    def cancel(self, calls: Iterable[Call]) -> None:
        """Cancels the calls that have not ended, and waits until they have."""
        left = [call for call in calls if not call.is_done or call.rest is not None]
        for call in left:
            call.is_cancelled = True
        if left:
            self._wait(asyncio.run_coroutine_threadsafe(_cancelled(left), self._loop), "a call")

    def complete(self) -> None:
        """Closes the client of a job that has not failed, and waits for it, unless the job is
        cancelled. Raises what the user's code raises: what the client had to commit may be lost."""
        client = self._client
        if client is None:
            return
        self._ask_to_close(None)
        while not concurrent.futures.wait([client], LOOK_SECONDS).done:
            if self._is_cancelled():
                return
        self._client = None
        raised = client.result()
        if raised is not None:
            raise raised

    def close(self, error: BaseException | None) -> None:
        """Closes the client, if it is open, with the error of the job if it has failed."""
        if self._loops is None:
            return
        try:
            if self._client is not None:
                self._close_client(self._client, error)
        finally:
            self._loops.release(self._patience)

    def _close_client(
        self, client: concurrent.futures.Future[BaseException | None], error: BaseException | None
    ) -> None:
        traceback = None if error is None else error.__traceback__
        self._ask_to_close(error)
        raised = self._wait(client, "closing the client")
        if error is not None:  # it belongs to the user, without the frames of closing
            error.__traceback__ = traceback
        if raised is not None and raised is not error:
            raise raised

    def _ask_to_close(self, error: BaseException | None) -> None:
        self._loop.call_soon_threadsafe(self._begin_to_close, error)

    def _begin_to_close(self, error: BaseException | None) -> None:
        assert self._closing is not None
        if not self._closing.done():
            self._closing.set_result(error)

    def _wait(self, ending: concurrent.futures.Future[T], what: str) -> T | None:
        """What the future has; None if it takes too long."""
        done, _ = concurrent.futures.wait([ending], self._patience)
        if done:
            return ending.result()
        if self._patience:
            logger.warning(
                "vertex '%s': %s has not ended after %.0f s and is left behind",
                self._vertex,
                what,
                self._patience,
            )
        self._patience = 0.0  # what blocks the thread blocks everything that follows
        return None


@found_in(Caller._hold_client)
@found_in(Caller._begin)
@found_in(Caller._finish)
@found_in(Caller._make_more)
def _whereabouts(frame: FrameType, inner: Sequence[FrameType]) -> Whereabouts:
    """For the log: calls run on another thread than their tasklet."""
    caller: Caller = frame.f_locals["self"]
    return caller.whereabouts


def _is_awaited(made: Any, spreads: bool) -> bool:
    return (
        type(made) is CoroutineType
        or inspect.isawaitable(made)
        or (spreads and _is_async_iterable(made))
    )


def _is_async_iterable(made: Any) -> bool:
    return hasattr(type(made), "__aiter__")


async def _cancelled(calls: Iterable[Call]) -> None:
    tasks = [call.task for call in calls if call.task is not None]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for call in calls:
        if type(call.awaited) is CoroutineType:
            call.awaited.close()  # if it has not begun, Python would warn
        pieces.abandon(call)
