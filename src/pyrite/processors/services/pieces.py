"""Takes what a call of flat_map_with makes in pieces: a call may make more than fits into memory,
or never end."""

from __future__ import annotations

import logging
from time import perf_counter
from types import GeneratorType
from typing import Any, Final

from pyrite.processors.services.window import Call

logger = logging.getLogger("pyrite.services")

PIECE: Final = 256
"""The most items that are taken at a time."""
PIECE_SECONDS: Final = 0.01
"""How long items are collected before they are passed on."""


def take(call: Call, *, is_whole: bool) -> None:
    """The next piece of an iterator, or all that is left of it."""
    piece: list[Any] = []
    ends = perf_counter() + PIECE_SECONDS
    for each in call.rest:
        piece.append(each)
        if call.is_cancelled or (not is_whole and _is_enough(piece, ends)):
            break
    else:
        call.rest = None
    call.made = piece


async def take_later(call: Call, *, is_whole: bool) -> None:
    """The next piece of an async iterator, or all that is left of it."""
    piece: list[Any] = []
    ends = perf_counter() + PIECE_SECONDS
    async for each in call.rest:
        piece.append(each)
        if not is_whole and _is_enough(piece, ends):
            break
    else:
        call.rest = None
    call.made = piece


def abandon(call: Call) -> None:
    """Ends the generator of a call that nobody needs any more, on the thread that runs it."""
    rest, call.rest = call.rest, None
    if type(rest) is GeneratorType:
        try:
            rest.close()
        except BaseException:
            logger.exception("closing a generator for item %r raised", call.item)


def _is_enough(piece: list[Any], ends: float) -> bool:
    return len(piece) >= PIECE or perf_counter() > ends
