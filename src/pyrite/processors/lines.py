"""Lines of text files, read in large blocks; and the division of files into ranges of bytes, so
that many can read one file.

A line belongs to the range in which its first byte is. So each line is read exactly once, wherever
the ranges begin and end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """Some bytes of a file, from `start` up to `end`."""

    path: str
    start: int
    end: int


def ranges_of(sizes: Sequence[tuple[str, int]], index: int, count: int) -> list[Range]:
    """The share of reader `index` of `count`: as many bytes as the others have, over the files
    (path, size) in their order.

    >>> ranges_of([("a", 10), ("b", 20)], 0, 2)
    [Range(path='a', start=0, end=10), Range(path='b', start=0, end=5)]
    >>> ranges_of([("a", 10), ("b", 20)], 1, 2)
    [Range(path='b', start=5, end=20)]
    """
    total = sum(size for _, size in sizes)
    first, last = total * index // count, total * (index + 1) // count
    ranges = []
    before = 0
    for path, size in sizes:
        start, end = max(first - before, 0), min(last - before, size)
        if start < end:
            ranges.append(Range(path, start, end))
        before += size
    return ranges


def blocks_of_lines(file: IO[bytes], start: int, end: int) -> Iterator[list[str]]:
    """The lines that begin in a range of a UTF-8 file, a list at a time, without their line ends
    (\\n, \\r\\n or \\r)."""
    position = start
    if start:
        file.seek(start - 1)
        position += len(file.readline()) - 1
    while position < end:
        block = file.read(min(BLOCK, end - position))
        if not block.endswith(b"\n"):
            block += file.readline()
        if not block:  # the file is shorter than it was
            return
        text = block.decode("utf-8-sig" if position == 0 else "utf-8")
        position += len(block)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # what follows the last line end is no line
        yield lines
