"""Server-sent events: a document, sent whenever it has changed, as long as someone listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio.to_thread
from starlette.responses import StreamingResponse

from pyrite.errors import PyriteError
from pyrite.ui.json_response import json_text

logger = logging.getLogger("pyrite.ui")

T = TypeVar("T")

EVENT_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 15.0
"""After so long without an event a comment is sent: it shows whether anyone is still there."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is to be sent now; with `is_last`, the stream ends after it."""

    document: Any
    is_last: bool = False


async def in_thread(read: Callable[[], T]) -> T:
    """Calls a function that may block. When the server stops, nobody waits for it."""
    return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)


def stream(name: str, read: Callable[[], Moment], stopping: asyncio.Event) -> StreamingResponse:
    """Reads about once a second, and sends the event `name` with each new document, or `problem`
    with {"error": sentence} if it cannot be read. After the last one comes the event `end`. When
    the server stops, the newest document is sent once more."""
    return StreamingResponse(
        _events(name, read, stopping),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},  # a proxy in between passes each event on at once
    )


async def _events(
    name: str, read: Callable[[], Moment], stopping: asyncio.Event
) -> AsyncIterator[str]:
    sent, silent = "", 0.0
    while True:
        is_stopping = stopping.is_set()
        try:
            moment = await in_thread(read)
            text = _event(name, moment.document)
        except PyriteError as error:  # a store that cannot be read now
            moment = Moment(None)
            text = _event("problem", {"error": str(error)})
        except Exception:
            moment = Moment(None)
            text = _event("problem", {"error": "the server could not read it; its log says why"})
            if text != sent:
                logger.warning("the event '%s' could not be read", name, exc_info=True)
        if text != sent:
            yield text
            sent, silent = text, 0.0
        elif silent >= SILENCE_SECONDS:
            yield ": still here\n\n"
            silent = 0.0
        if moment.is_last:
            yield "event: end\ndata: {}\n\n"
        if moment.is_last or is_stopping:
            return
        try:
            await asyncio.wait_for(stopping.wait(), EVENT_SECONDS)
        except TimeoutError:
            silent += EVENT_SECONDS


def _event(name: str, document: Any) -> str:
    return f"event: {name}\ndata: {json_text(document)}\n\n"
