"""Failures that travel to another process: as they are where they can, else as a description."""

from __future__ import annotations

import pickle
import sys
import traceback
import zlib
from typing import Final

import cloudpickle

from pyrite.engine.failure import Failed
from pyrite.functions import message_of, shorten, shorten_text

LONGEST_MESSAGE: Final = 2000
LONGEST_TRACEBACK: Final = 6000
MOST_PICKLED_BYTES: Final = 4 << 20
"""An error or an item with more goes as a description: to compress 100 MB takes seconds, in which
the process can do nothing else."""


class RemoteError(Exception):
    """Stands for an exception that could not travel from the process that raised it."""


def pack_failure(failed: Failed, *, most_bytes: int = sys.maxsize) -> bytes:
    """A failure as bytes. The traceback travels as text and becomes a note of the error. What
    cannot be pickled, or makes it too long, goes as a description."""
    error, item = failed.error, failed.item
    message = shorten_text(message_of(error), LONGEST_MESSAGE)
    try:
        text = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
    except Exception:
        text = message
    description = RemoteError(message)
    for candidate, what in (
        (error, item),
        (error, shorten(item)),
        (description, item),
        (description, shorten(item)),
    ):
        try:
            candidate.__traceback__ = None
            packed = cloudpickle.dumps((candidate, what))
            if len(packed) > MOST_PICKLED_BYTES:
                continue
            pickle.loads(packed)
        except BaseException:  # whatever its __reduce__ does
            continue
        whole = zlib.compress(
            cloudpickle.dumps(
                (failed.vertex, failed.processor, failed.edge, shorten(item), message, text, packed)
            ),
            9,
        )
        if len(whole) < most_bytes:
            break
    return whole


def unpack_failure(data: bytes | memoryview) -> Failed:
    """The failure that the bytes are."""
    vertex, processor, edge, item, message, text, packed = pickle.loads(zlib.decompress(data))
    try:
        error, item = pickle.loads(packed)
    except BaseException:  # its class is known over there only
        error = RemoteError(message)
    # Added here, because an exception with a `__reduce__` of its own may drop its notes.
    error.add_note(text)
    return Failed(error, vertex, processor, edge, item)
