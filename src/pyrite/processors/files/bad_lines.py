"""Lines of files that cannot be read, as bad records with the file and the number of the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pyrite.bad_records import BadRecord
from pyrite.errors import ProcessorError
from pyrite.processors.files.decoding import UTF_8
from pyrite.processors.files.lines import Range, count_lines
from pyrite.processors.files.packing import opened
from pyrite.processors.files.storage import Storage

_ESCAPED = re.compile("[\udc80-\udcff]")
"""What bytes that are not text become with the error handler `surrogateescape`."""


def bad_line(path: str, number: int, text: str, message: str) -> BadRecord:
    """The bad record of a line. Its item has the path of the file, the number of the line and its
    text."""
    item = {"path": path, "line": number, "text": readable(text)}
    return BadRecord(item, ProcessorError(message))


class Place:
    """Where the reader of a part of a file is. The lines before the part are counted only if there
    is a bad line."""

    def __init__(self, storage: Storage, part: Range, encoding: str) -> None:
        self._storage = storage
        self._part = part
        self._encoding = encoding
        self._before: int | None = None
        self._passed = 0

    def passed(self, lines: int) -> None:
        """Goes on by some lines."""
        self._passed += lines

    def bad_line(self, index: int, line: str, why: str) -> BadRecord:
        """The bad record of the line that is `index` lines further."""
        if self._before is None:
            with opened(self._storage, self._part.path) as again:
                self._before = count_lines(again, self._part, self._encoding)
        number = self._before + self._passed + index + 1
        message = f"line {number} of '{self._part.path}' {why}"
        return bad_line(self._part.path, number, line, message)


def with_bad_text(
    blocks: Iterable[list[str]], storage: Storage, part: Range, encoding: str
) -> Iterator[list[Any]]:
    """The lines, with a bad record in place of each of which some bytes could not be decoded."""
    place = Place(storage, part, encoding)
    for lines in blocks:
        if holds_bad_text(lines):
            whys = [bad_text(line, encoding) for line in lines]
            yield [
                line if why is None else place.bad_line(index, line, why)
                for index, (line, why) in enumerate(zip(lines, whys))
            ]
        else:
            yield lines
        place.passed(len(lines))


def holds_bad_text(lines: Iterable[str]) -> bool:
    return any(_ESCAPED.search(line) for line in lines if not line.isascii())


def bad_text(line: str, encoding: str) -> str | None:
    """What is wrong with a line of which some bytes could not be decoded; None if nothing is."""
    if _ESCAPED.search(line) is None:
        return None
    return f"is not {'UTF-8' if encoding == UTF_8 else encoding} text: {readable(line)}"


def readable(text: str) -> str:
    r"""
    >>> print(readable("caf\udce9"))
    caf\xe9
    """
    return _ESCAPED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
