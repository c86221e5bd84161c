"""Calls between processes: each gets its reply, or an error that says why there is none."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from pyrite import PyriteError
from pyrite.cluster import Client
from pyrite.cluster.calls import Calls, reply
from pyrite.wire import messages as m


class Straight:
    """A connection whose messages are delivered at once."""

    def __init__(self, deliver: Callable[[Any], None]) -> None:
        self.send = deliver


def asked(request: Any, serve: Callable[[Any], Any]) -> Future[Any]:
    """What becomes of a call."""
    calls, future = Calls(), Future[Any]()
    back: Any = Straight(calls.replied)
    there: Any = Straight(lambda call: reply(back, call, serve))
    calls.send(there, pickle.dumps(request), future)
    assert future.done()
    return future


def test_a_call_has_the_result_or_the_error_of_what_was_asked() -> None:
    assert asked(2, lambda n: n + 1).result() == 3
    with pytest.raises(ZeroDivisionError):
        asked(0, lambda n: 1 // n).result()


class LoadsElsewhere:
    """Can be unpickled in any process but the one that made it."""

    def __init__(self, home: int) -> None:
        self.home = home

    def __reduce__(self) -> Any:
        return load_elsewhere, (self.home,)


def load_elsewhere(home: int) -> LoadsElsewhere:
    if os.getpid() == home:
        raise ImportError("not at home")
    return LoadsElsewhere(home)


def test_a_reply_that_cannot_be_unpickled_is_an_error_and_no_endless_wait(client: Client) -> None:
    client.map("elsewhere")[1] = LoadsElsewhere(os.getpid())
    with pytest.raises(PyriteError, match="cannot be unpickled here: ImportError: not at home"):
        client.map("elsewhere").get(1)
    del client.map("elsewhere")[1]


@pytest.mark.parametrize(("request_size", "reply_size"), [(2000, 0), (0, 2000)])
def test_a_message_over_its_limit_fails_the_call_and_not_the_connection(
    monkeypatch: pytest.MonkeyPatch, request_size: int, reply_size: int
) -> None:
    monkeypatch.setattr("pyrite.cluster.calls.MOST_BYTES", 1000)
    with pytest.raises(PyriteError, match="a message has at most 1 GB"):
        asked(bytes(request_size), lambda _: bytes(reply_size)).result()


def test_a_reply_that_nobody_waits_for_is_ignored() -> None:
    Calls().replied(m.Reply(7, b"whatever"))
