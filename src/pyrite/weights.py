"""How much an item weighs. A batch of rows weighs its rows in metrics and its bytes in limits; any
other item is one item. pyarrow is not imported here: without it there are no batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

MOST_BYTES_QUEUED: Final = 32 << 20
"""The most bytes of batches in a queue, or in a bucket of an outbox, before it is full."""


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
