"""The division of a Parquet file among readers: which of its row groups are in a range of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrite.processors.files.lines import Range

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


def row_groups_in(part: Range, sizes: Sequence[int]) -> list[int]:
    """The row groups of a file, whose sizes these are, that a reader of this part reads.

    A row group belongs to the part in which its middle is, with the row groups laid over the bytes
    of the file in proportion to their sizes. So each is in exactly one of the parts of a file.

    >>> row_groups_in(Range("a", 0, 50, 100), [7, 7, 7])
    [0]
    >>> row_groups_in(Range("a", 50, 100, 100), [7, 7, 7])
    [1, 2]
    """
    weights = [max(size, 1) for size in sizes]
    total, before = sum(weights), 0
    chosen = []
    for index, weight in enumerate(weights):
        middle = (2 * before + weight) * part.size // (2 * total)
        if part.start <= middle < part.end:
            chosen.append(index)
        before += weight
    return chosen


def sizes_of(metadata: FileMetaData) -> list[int]:
    """How many bytes each row group of a file has."""
    return [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
