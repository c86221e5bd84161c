"""Streams of events: what goes wrong while they are read does not end them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyrite.ui import streaming
from pyrite.ui.streaming import Moment, stream


def test_a_stream_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "EVENT_SECONDS", 0.01)
    moments: Iterator[Moment | Exception] = iter(
        [Moment({"n": 1}), KeyError("n"), Moment({"n": math.nan}, is_last=True)]
    )

    def read() -> Moment:
        found = next(moments)
        if isinstance(found, Exception):
            raise found
        return found

    async def events() -> list[object]:
        return [each async for each in stream("run", read, asyncio.Event()).body_iterator]

    # The thread of the tests may have the event loop of a browser.
    with ThreadPoolExecutor(1) as other:
        first, problem, last, end = other.submit(asyncio.run, events()).result(10)
    assert first == 'event: run\ndata: {"n":1}\n\n'
    assert str(problem).startswith("event: problem\n")
    assert last == 'event: run\ndata: {"n":null}\n\n'
    assert str(end).startswith("event: end\n")
