"""Text files: each line is an item. Also what all formats share that write text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.functions import shorten
from pyrite.processors.files.decoding import UTF_8, has_ascii_line_ends
from pyrite.processors.files.formats import Format, Written, text_of
from pyrite.processors.files.lines import Range, blocks_of_lines
from pyrite.processors.files.storage import Storage
from pyrite.processors.steps import BadItem, Writer


@dataclass(frozen=True, slots=True)
class Text(Format):
    encoding: str = UTF_8
    suffix = ".txt"

    @property
    def can_be_split(self) -> bool:
        return has_ascii_line_ends(self.encoding)

    def read(self, storage: Storage, part: Range) -> Iterator[list[str]]:
        with text_of(storage, part.path, self.encoding) as file:
            yield from blocks_of_lines(file, part, self.encoding)

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> Writer:
        return _LineWriter(storage, folder, name, vertex)


class TextWriter(Writer):
    """Writes text to one file, which stays open until all is written."""

    def __init__(self, storage: Storage, folder: str, name: str, vertex: str) -> None:
        self._file = storage.open(f"{folder}/{name}", "wb")
        self._name = name
        self._vertex = vertex
        self._is_empty = True

    def complete(self) -> Written:
        self._file.close()
        return Written(self._name)

    def close(self) -> None:
        self._file.close()

    def write_text(self, text: str, items: Sequence[Any], text_of: Callable[[Any], str]) -> None:
        """Writes the text of some items; `text_of` gives that of one, to find the bad one."""
        if self._is_empty and text.startswith("\ufeff"):
            # A reader takes this character for a byte order mark and removes it, so the file gets
            # one of these of its own.
            text = "\ufeff" + text
        self._is_empty = False
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            for item in items:
                try:
                    text_of(item).encode()
                except UnicodeEncodeError as error:
                    raise BadItem(
                        f"vertex '{self._vertex}' cannot write an item as UTF-8, because it holds "
                        f"half of a surrogate pair ({error.object[error.start]!a} at position "
                        f"{error.start}); remove it, for example with "
                        f"text.encode('utf-8', 'replace').decode(): {shorten(item)}",
                        item,
                    ) from error
            raise
        self._file.write(encoded)


class _LineWriter(TextWriter):
    def write(self, items: list[Any]) -> None:
        try:
            text = "\n".join(items) + "\n"
        except TypeError:  # not all are strings
            text = "\n".join([self._line(item) for item in items]) + "\n"
        if text.count("\n") != len(items) or "\r" in text:
            self._raise_for_line_break(items)
        self.write_text(text, items, str)

    def _line(self, item: Any) -> str:
        try:
            return str(item)
        except Exception as error:
            raise BadItem(
                f"vertex '{self._vertex}' cannot write an item as text: its str() raised {error!r}",
                item,
            ) from error

    def _raise_for_line_break(self, items: Sequence[Any]) -> None:
        for item in items:
            line = str(item)
            if "\n" in line or "\r" in line:
                raise BadItem(
                    f"vertex '{self._vertex}' writes text lines, but got an item with a line break "
                    f"in it, which would be read back as two; write it as jsonl: {shorten(line)}",
                    item,
                )
