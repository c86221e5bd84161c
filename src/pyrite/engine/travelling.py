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
    """A failure as bytes. The traceback becomes a note of the error. What of it cannot be pickled,
    or makes it too long, goes as a description."""
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
            packed = _with_note(candidate, text, what)
            if len(packed) > MOST_PICKLED_BYTES:
                continue
            pickle.loads(packed)
        except Exception:
            continue
        whole = zlib.compress(
            cloudpickle.dumps(
                (failed.vertex, failed.processor, failed.edge, shorten(item), message, packed)
            ),
            9,
        )
        if len(whole) < most_bytes:
            break
    return whole


def _with_note(error: BaseException, note: str, item: object) -> bytes:
    """Pickles an error and an item. The note goes along, but does not stay: an error that fails
    many executions, or is raised again and again, would collect notes."""
    notes = list(getattr(error, "__notes__", ()))
    try:
        error.add_note(note)
        error.__traceback__ = None
        packed: bytes = cloudpickle.dumps((error, item))
    finally:
        error.__notes__ = notes
    return packed


def unpack_failure(data: bytes | memoryview) -> Failed:
    """The failure that the bytes are."""
    vertex, processor, edge, item, message, packed = pickle.loads(zlib.decompress(data))
    try:
        error, item = pickle.loads(packed)
    except Exception:  # its class is known over there only
        error = RemoteError(message)
    return Failed(error, vertex, processor, edge, item)
