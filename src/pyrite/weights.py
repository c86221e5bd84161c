"""How much an item weighs. A batch of rows weighs its rows in metrics and its bytes in limits; any
other item is one item. pyarrow is not imported here: without it there are no batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

MOST_BYTES_QUEUED: Final = 32 << 20
"""The most bytes of batches in a queue, or in a bucket of an outbox, before it is full. A larger
batch goes through alone."""
BYTES_AT_ONCE: Final = 1 << 20
"""A processor gets batches until they have so many bytes; so do packets."""
MOST_PACKET_BYTES: Final = 8 << 20
"""A packet with several batches has no more bytes than this."""


def is_batch(item: Any) -> bool:
    """Whether an item is a batch of rows (a `pyarrow.RecordBatch`).

    >>> is_batch("a row")
    False
    """
    arrow = sys.modules.get("pyarrow.lib")
    return arrow is not None and type(item) is arrow.RecordBatch


def count_of(items: Sequence[Any]) -> int:
    """How many items these are in metrics: a batch counts as its rows. Items of an edge are either
    all batches or none, so only the first is looked at before all are."""
    if not items or not is_batch(items[0]):
        return len(items)
    return sum(item.num_rows if is_batch(item) else 1 for item in items)


def bytes_of(items: Sequence[Any]) -> int:
    """The bytes of the batches among the items; 0 if the first is none."""
    if not items or not is_batch(items[0]):
        return 0
    return sum(item.nbytes for item in items if is_batch(item))


def how_many_fit(batches: Sequence[Any], room: int, *, is_empty: bool = True) -> int:
    """How many of the batches, from the first on, have no more than so many bytes together. The
    first one always fits where nothing is yet."""
    size = 0
    for at, batch in enumerate(batches):
        size += batch.nbytes if is_batch(batch) else 0
        if size > room and (at or not is_empty):
            return at
    return len(batches)
