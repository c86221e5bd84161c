"""The sources of a durable job, cut into splits when the job is submitted.

A split is an item of an inbound edge that the vertex of the source gets, so the vertex runs like
any other: `Cut.step` turns each split into its items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pyrite.context import Collections
from pyrite.errors import InvalidDAG
from pyrite.exchange.reach import check_reach
from pyrite.processors.collections import ReadNamed
from pyrite.processors.files import ReadFiles
from pyrite.processors.items import CAN_BE_SLICED, ReadItems, ReadOnce
from pyrite.processors.loops.steps import ReadStep, Transform
from pyrite.processors.spark import ReadSpark
from pyrite.processors.split_sources import ReadSplits
from pyrite.processors.sql import ReadSql

MOST_BYTES = 1 << 20
"""Of a file, in one split: some 10,000 lines. A split is read again if its peer dies."""
MOST_ROWS = 10_000
"""Of a table, in one split, if it can be divided."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The splits of a source, which can be iterated once, and the step that reads them."""

    splits: Iterable[Any]
    step: Transform


def cut(
    step: ReadStep,
    vertex: str,
    *,
    collections: Collections,
    most_items: int = 1000,
    most_bytes: int = MOST_BYTES,
) -> Cut | None:
    """Cuts a source as it is now; None if Pyrite does not know how to divide it.

    A split has at most so many items, or so many bytes of files that can be divided. Raises
    InvalidDAG for what a durable job cannot read.
    """
    check_reach(step, vertex, "process of a durable job")
    if isinstance(step, ReadSpark):
        raise InvalidDAG(
            f"vertex '{vertex}' reads a Spark DataFrame, but a durable job has no Spark session; "
            "write the DataFrame to files, such as Parquet, and read them with read_files(), or "
            "use new_job"
        )
    if isinstance(step, ReadFiles):
        found = step.found(vertex, 1)
        reader = replace(found, files=None)  # each task gets the reader, and the splits name files
        splits = found.splits(found.files or (), most_bytes)
        return Cut(splits, ReadSplits(reader.blocks, False, step.may_block))
    if isinstance(step, ReadSql):
        reads = ReadSplits(step.reader(vertex), may_hold_none=False, may_block=True)
        return Cut(step.splits(vertex, MOST_ROWS), reads)
    items: Iterable[Any]
    if isinstance(step, ReadItems):
        items = step.items
    elif isinstance(step, ReadOnce):
        items = step.take(vertex)
    elif isinstance(step, ReadNamed):
        items = step.contents(collections)
    else:
        return None
    return Cut(_chunks(items, most_items), ReadSplits(_whole, step.may_hold_none))


def _chunks(items: Iterable[Any], most: int) -> Iterator[Any]:
    """A chunk of a range is a range, and a chunk of a string is a string."""
    if isinstance(items, CAN_BE_SLICED):
        for start in range(0, len(items), most):
            yield items[start : start + most]
    else:
        rest = iter(items)
        while chunk := list(islice(rest, most)):
            yield chunk


def _whole(split: Any) -> tuple[Any]:
    return (split,)
