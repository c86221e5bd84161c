"""Lines of text files, read in large blocks; and the division of files into ranges of bytes, so
that many can read one file.

A line belongs to the range in which its first byte is. So each line is read exactly once, wherever
the ranges begin and end.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

from pyrite.processors.files.decoding import UTF_8, has_ascii_line_ends

BLOCK = 1 << 17
END = sys.maxsize
"""The end of a range that goes to the end of its file, wherever that is."""


@dataclass(frozen=True, slots=True)
class Range:
    """Some bytes of a file, from `start` up to `end`."""

    path: str
    start: int = 0
    end: int = END
    size: int = END
    """How many bytes the file had when it was found."""


def ranges_of(sizes: Sequence[tuple[str, int]], index: int, count: int) -> list[Range]:
    """The share of reader `index` of `count`: as many bytes as the others have, over the files
    (path, size) in their order.

    >>> ranges_of([("a", 10), ("b", 20)], 0, 2)
    [Range(path='a', start=0, end=10, size=10), Range(path='b', start=0, end=5, size=20)]
    >>> ranges_of([("a", 10), ("b", 20)], 1, 2)
    [Range(path='b', start=5, end=20, size=20)]
    """
    total = sum(size for _, size in sizes)
    first, last = total * index // count, total * (index + 1) // count
    ranges = []
    before = 0
    for path, size in sizes:
        start, end = max(first - before, 0), min(last - before, size)
        if start < end:
            ranges.append(Range(path, start, end, size))
        before += size
    return ranges


def pieces_of(path: str, size: int, most: int) -> list[Range]:
    """A file in ranges of at most so many bytes, all of about the same size.

    >>> [(piece.start, piece.end) for piece in pieces_of("a", 10, 4)]
    [(0, 3), (3, 6), (6, 10)]
    """
    count = -(-size // most)
    cuts = [size * n // count for n in range(count + 1)]
    return [Range(path, start, end, size) for start, end in pairwise(cuts)]


def blocks_of_bytes(file: IO[bytes], part: Range, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in a range of a file, of which each byte \\n ends one, in blocks of at
    least this size; and where in the file each block begins."""
    position, end = part.start, part.end
    if position:
        file.seek(position - 1)
        position += len(file.readline()) - 1
    while position < end:
        block = file.read(min(size, end - position))
        if not block.endswith(b"\n"):
            block += file.readline()
        if not block:  # the end of the file
            return
        yield position, block
        position += len(block)


def blocks_of_lines(
    file: IO[bytes], part: Range, encoding: str = UTF_8, errors: str = "strict"
) -> Iterator[list[str]]:
    """The lines that begin in a range of a text file, a list at a time, without their line ends
    (\\n, \\r\\n or \\r). Raises UnicodeDecodeError, of which only the reason is right, unless
    `errors` names another error handler."""
    if not has_ascii_line_ends(encoding):
        yield from _whole_file(file, encoding)
        return
    for at, block in blocks_of_bytes(file, part):
        if at == 0 and encoding == UTF_8:
            block = block.removeprefix(codecs.BOM_UTF8)
        text = block.decode(encoding, errors)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # what follows the last line end is no line
        yield lines


def count_lines(file: IO[bytes], part: Range, encoding: str = UTF_8) -> int:
    """How many lines of the file come before the first one of a range."""
    before = Range(part.path, 0, part.start)
    if not part.start:
        return 0
    return sum(map(len, blocks_of_lines(file, before, encoding, errors="replace")))


def _whole_file(file: IO[bytes], encoding: str) -> Iterator[list[str]]:
    with io.TextIOWrapper(file, encoding=encoding) as text:
        is_first = True
        while lines := text.readlines(BLOCK):
            if is_first:
                lines[0] = lines[0].removeprefix("\ufeff")
                is_first = False
            yield [line.removesuffix("\n") for line in lines if line]
