"""Failures that travel to another process: as they are where they can, else as a description."""

from __future__ import annotations

import pickle
import sys
import traceback
import zlib
from typing import Any, Final

from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.engine.failure import Failed
from pyrite.functions import message_of, shorten, shorten_text
from pyrite.processors.loops.replaying import (
    MOST_BYTES,
    TooLong,
    pickled,
    pickled_if_short,
    replayable_part,
)

LONGEST_MESSAGE: Final = 2000
LONGEST_TRACEBACK: Final = 6000
MOST_PICKLED_BYTES: Final = 4 << 20
"""An error or an item with more goes as a description: to compress 100 MB takes seconds, in which
the process can do nothing else."""


class RemoteError(Exception):
    """Stands for an exception that could not travel from the process that raised it."""


def pack_failure(failed: Failed, *, most_bytes: int = sys.maxsize) -> bytes:
    """A failure as bytes. The traceback travels as text and becomes a note of the error. What
    cannot be pickled, or makes it too long, goes as a description; the step of the vertex is left
    out then, and first of all if it is too long."""
    error, item = failed.error, failed.item
    message = shorten_text(message_of(error), LONGEST_MESSAGE)
    try:
        text = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
    except Exception:
        text = message
    description = RemoteError(message)
    items = _ways_to_send(failed)
    supplier = failed.supplier
    step = supplier if isinstance(supplier, bytes) else pickled(replayable_part(supplier))
    for candidate, (what, reason), packed_step in [
        *([(error, items[0], step)] if step is not None else []),
        *((each, (what, reason), None) for each in (error, description) for what, reason in items),
    ]:
        try:
            candidate.__traceback__ = None
            packed = dumps_code((candidate, what))
            if len(packed) > MOST_PICKLED_BYTES:
                continue
            pickle.loads(packed)
        except BaseException:  # whatever its __reduce__ does
            continue
        known = (failed.vertex, failed.processor, failed.edge, shorten(item), message, text)
        whole = zlib.compress(
            dumps_code((*known, packed, reason, packed_step, failed.is_result)), 9
        )
        if len(whole) < most_bytes:
            break
    return whole


def _ways_to_send(failed: Failed) -> list[tuple[Any, str | None]]:
    """The item, if it may travel, and a description of it, with the reason why it is one."""
    item = failed.item
    if failed.why_no_item is not None:
        return [(item, failed.why_no_item)]
    try:
        size = len(pickled_if_short(item))
    except TooLong:
        return [(shorten(item), f"it has more than {MOST_BYTES:,} bytes when pickled")]
    except BaseException as error:  # whatever its __reduce__ does
        return [(shorten(item), f"it cannot be pickled ({message_of(error)})")]
    return [
        (item, None),
        (shorten(item), f"it has {size:,} bytes when pickled, too many for the report of an error"),
    ]


def unpack_failure(data: bytes | memoryview) -> Failed:
    """The failure that the bytes are."""
    vertex, processor, edge, item, message, text, packed, why, step, is_result = pickle.loads(
        zlib.decompress(data)
    )
    try:
        error, item = pickle.loads(packed)
    except BaseException as unloaded:  # its class is known over there only
        error = RemoteError(message)
        why = why or f"it cannot be loaded here ({message_of(unloaded)})"
    # Added here, because an exception with a `__reduce__` of its own may drop its notes.
    error.add_note(text)
    return Failed(error, vertex, processor, edge, item, why, step, is_result)
