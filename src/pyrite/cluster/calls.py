"""Calls: what one side asks of another and waits for, each reply matched with its question."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from pyrite.cluster.light.outcomes import MemberLost
from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.errors import PyriteError
from pyrite.functions import message_of
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection

MOST_BYTES: Final = 1 << 30


class Calls:
    """The calls that wait for a reply. Used by the wire's own thread alone."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Connection, Future[Any]]] = {}
        self._numbers = itertools.count()

    def send(self, connection: Connection, request: bytes, future: Future[Any]) -> None:
        if len(request) > MOST_BYTES:
            future.set_exception(_too_long("request", len(request)))
            return
        number = next(self._numbers)
        self._waiting[number] = connection, future
        connection.send(m.Call(number, request))

    def replied(self, message: m.Reply) -> None:
        _, future = self._waiting.pop(message.number, (None, None))
        if future is not None:
            try:
                well, result = pickle.loads(message.result)
            except Exception as error:  # else the caller would wait for ever
                well, result = False, _unreadable(error)
            (future.set_result if well else future.set_exception)(result)

    def lost(self, connection: Connection, reason: str) -> None:
        """Nobody will reply any more."""
        self._fail(connection, MemberLost(f"{connection.name} was lost: {reason}"))

    def end(self, error: Exception) -> None:
        """Nobody will take a reply any more."""
        for connection in {connection for connection, _ in self._waiting.values()}:
            self._fail(connection, error)

    def _fail(self, connection: Connection, error: Exception) -> None:
        for number, (to, future) in list(self._waiting.items()):
            if to is connection:
                del self._waiting[number]
                future.set_exception(error)


def reply(connection: Connection, message: m.Call, serve: Callable[[Any], Any]) -> None:
    """Does what a call asks for, and replies with the result, or with what it raised. If the result
    is a future, the reply follows when that is done."""
    try:
        served = serve(pickle.loads(message.request))
        if isinstance(served, Future):
            served.add_done_callback(
                lambda done: reply(connection, message, lambda _: done.result())
            )
            return
        result = dumps_code((True, served))
        if len(result) > MOST_BYTES:
            raise _too_long("reply", len(result))
    except BaseException as error:
        result = _pickled(error)
    connection.send(m.Reply(message.number, result))


def reply_error(connection: Connection, message: m.Call, error: BaseException) -> None:
    """Replies that a call could not be served."""
    connection.send(m.Reply(message.number, _pickled(error)))


def _too_long(what: str, size: int) -> PyriteError:
    return PyriteError(
        f"the {what} has {size} bytes, but a message has at most 1 GB; read or write less at a time"
    )


def _unreadable(error: Exception) -> PyriteError:
    unreadable = PyriteError(
        f"a value that another process sent cannot be unpickled here: {message_of(error)}; its "
        "class must be importable on all members and in the client"
    )
    unreadable.__cause__ = error
    return unreadable


def _pickled(error: BaseException) -> bytes:
    try:
        data: bytes = dumps_code((False, error))
        pickle.loads(data)
    except Exception:
        data = dumps_code((False, PyriteError(f"{type(error).__name__}: {error}")))
    return data
