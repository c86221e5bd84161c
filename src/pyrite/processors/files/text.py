"""Text files: each line is an item. Also what all formats share that write text."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, ClassVar

from pyrite.functions import shorten
from pyrite.processors.files.bad_lines import with_bad_text
from pyrite.processors.files.decoding import UTF_8, has_ascii_line_ends, not_text
from pyrite.processors.files.formats import FileWriter, Format, Written
from pyrite.processors.files.lines import BLOCK, Range, blocks_of_lines
from pyrite.processors.files.packing import SUFFIXES, NewFile, opened
from pyrite.processors.files.storage import Storage
from pyrite.processors.steps import BadItem


@dataclass(frozen=True, slots=True)
class TextFormat(Format):
    """What the formats have in common whose files are text."""

    encoding: str = UTF_8
    """That of the files to read; they are written in UTF-8."""
    compression: str | None = None
    """That of the files to write; those to read have it in their names."""
    goes_on: bool = False
    """Whether a line that cannot be read is a BadRecord among the items, not an error."""
    extension: ClassVar[str]

    @property
    def suffix(self) -> str:
        return self.extension + ("" if self.compression is None else SUFFIXES[self.compression])

    @property
    def can_be_split(self) -> bool:
        return has_ascii_line_ends(self.encoding)

    def going_on(self) -> TextFormat:
        return replace(self, goes_on=True)

    @property
    def decoding_errors(self) -> str:
        """How bytes that are not text are decoded: as an error, or so that `bad_text` finds
        them."""
        return "surrogateescape" if self.goes_on else "strict"

    @contextmanager
    def text_of(self, storage: Storage, path: str) -> Iterator[IO[bytes]]:
        """A file to read text from. What is not text in its encoding is an error that names the
        line and the byte."""
        try:
            with opened(storage, path) as file:
                yield file
        except UnicodeDecodeError as error:
            with opened(storage, path) as again:
                raise not_text(again, path, self.encoding) from error

    def join(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written], name: str
    ) -> None:
        new = NewFile(storage, f"{folder}/{name}")
        try:
            first = None
            for each in written:
                for block in self.blocks(storage, f"{folder}/{each.name}", each, first):
                    new.write(block)
                    first = first or each
        finally:
            new.close()

    def blocks(
        self, storage: Storage, path: str, written: Written, after: Written | None
    ) -> Iterator[bytes]:
        """What is in a file that was written, a block at a time: the whole, or what it adds to
        another one."""
        beginning = self.beginning(written)
        with opened(storage, path) as file:
            block = file.read(BLOCK + len(beginning))
            if after is not None:
                block = block.removeprefix(beginning)
            while block:
                yield block
                block = file.read(BLOCK)

    def beginning(self, written: Written) -> bytes:
        """What a file may begin with, only because it is the beginning."""
        return codecs.BOM_UTF8


@dataclass(frozen=True, slots=True)
class Text(TextFormat):
    extension = ".txt"

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        with self.text_of(storage, part.path) as file:
            blocks = blocks_of_lines(file, part, self.encoding, self.decoding_errors)
            if self.goes_on:
                yield from with_bad_text(blocks, storage, part, self.encoding)
            else:
                yield from blocks

    def checker(self, vertex: str) -> Callable[[Any], object]:
        return partial(_check_line, vertex)

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        return _LineWriter(storage, folder, name, vertex)


def with_mark(text: str) -> str:
    """Text for the beginning of a file. A reader drops a byte order mark there, so text that begins
    with one gets another."""
    return "\ufeff" + text if text.startswith("\ufeff") else text


class TextWriter(FileWriter):
    """Writes text to one file, which stays open until all is written."""

    def __init__(self, storage: Storage, folder: str, name: str, vertex: str) -> None:
        self._file = NewFile(storage, f"{folder}/{name}")
        self._name = name
        self._vertex = vertex
        self._is_empty = True

    def complete(self) -> Written:
        self._file.close()
        return Written(self._name)

    def is_full(self, size: int) -> bool:
        return self._file.size >= size

    def close(self) -> None:
        self._file.close()

    def write_text(self, text: str, items: Sequence[Any], text_of: Callable[[Any], str]) -> None:
        """Writes the text of some items; `text_of` gives that of one, to find the bad one."""
        if self._is_empty:
            text, self._is_empty = with_mark(text), False
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            for item in items:
                check_encoding(text_of(item), item, self._vertex)
            raise
        self._file.write(encoded)


def check_encoding(text: str, item: Any, vertex: str) -> None:
    """Raises BadItem if the text of an item cannot be written."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadItem(
            f"vertex '{vertex}' cannot write an item as UTF-8, because it holds half of a "
            f"surrogate pair ({error.object[error.start]!a} at position {error.start}); remove it, "
            f"for example with text.encode('utf-8', 'replace').decode(): {shorten(item)}",
            item,
        ) from error


class _LineWriter(TextWriter):
    def write(self, items: list[Any]) -> None:
        try:
            text = "\n".join(items) + "\n"
        except TypeError:  # not all are strings
            text = "\n".join([_line(item, self._vertex) for item in items]) + "\n"
        if text.count("\n") != len(items) or "\r" in text:
            for item in items:
                _check_line_break(str(item), item, self._vertex)
        self.write_text(text, items, str)


def _check_line(vertex: str, item: Any) -> None:
    line = _line(item, vertex)
    _check_line_break(line, item, vertex)
    check_encoding(line, item, vertex)


def _line(item: Any, vertex: str) -> str:
    try:
        return str(item)
    except Exception as error:
        raise BadItem(
            f"vertex '{vertex}' cannot write an item as text: its str() raised {error!r}", item
        ) from error


def _check_line_break(line: str, item: Any, vertex: str) -> None:
    if "\n" in line or "\r" in line:
        raise BadItem(
            f"vertex '{vertex}' writes text lines, but got an item with a line break in it, which "
            f"would be read back as two; write it as jsonl: {shorten(line)}",
            item,
        )
