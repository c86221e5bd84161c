"""Calls: what one side asks of another and waits for, each reply matched with its question."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import cloudpickle

from pyrite.cluster.light.outcomes import MemberLost
from pyrite.errors import PyriteError
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection


class Calls:
    """The calls that wait for a reply. Used by the wire's own thread alone."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Connection, Future[Any]]] = {}
        self._numbers = itertools.count()

    def send(self, connection: Connection, request: bytes, future: Future[Any]) -> None:
        number = next(self._numbers)
        self._waiting[number] = connection, future
        connection.send(m.Call(number, request))

    def replied(self, message: m.Reply) -> None:
        _, future = self._waiting.pop(message.number, (None, None))
        if future is not None:
            well, result = pickle.loads(message.result)
            (future.set_result if well else future.set_exception)(result)

    def lost(self, connection: Connection, reason: str) -> None:
        """Nobody will reply any more."""
        for number, (to, future) in list(self._waiting.items()):
            if to is connection:
                del self._waiting[number]
                future.set_exception(MemberLost(f"{connection.name} was lost: {reason}"))


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
        result = cloudpickle.dumps((True, served))
    except BaseException as error:
        result = _pickled(error)
    connection.send(m.Reply(message.number, result))


def _pickled(error: BaseException) -> bytes:
    try:
        data: bytes = cloudpickle.dumps((False, error))
        pickle.loads(data)
    except Exception:
        data = cloudpickle.dumps((False, PyriteError(f"{type(error).__name__}: {error}")))
    return data
