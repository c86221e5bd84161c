"""What a file format is: how items are read from files of it, and written to them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from pyrite.functions import shorten
from pyrite.processors.files.decoding import not_text
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage
from pyrite.processors.steps import BadItem, Writer


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer says when it has completed: the name of its file, and what the format wants to
    know about it at the commit."""

    name: str
    about: Any = None


class Format:
    """A file format. Plain data: it travels with the step that uses it."""

    __slots__ = ()
    suffix: str

    @property
    def can_be_split(self) -> bool:
        """Whether several readers can share one file, each with a range of its bytes."""
        return False

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        """The items that begin in a part of a file, a list at a time. No item is None."""
        raise NotImplementedError

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> Writer:
        """Writes to a new file in a folder. What it completes with is a Written."""
        raise NotImplementedError

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        """The files to commit, when all writers have completed."""
        return written


def check_row(item: Any, vertex: str) -> None:
    """Raises BadItem if an item cannot be a row."""
    if not isinstance(item, dict):
        raise BadItem(
            f"vertex '{vertex}' writes rows, so each item must be a dict; got {shorten(item)}",
            item,
        )


def is_packed(path: str) -> bool:
    return path.endswith((".gz", ".zst"))


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[IO[bytes]]:
    """A file to read from, unpacked on the way if its name says that it is packed."""
    with storage.open(path, "rb") as file:
        if path.endswith(".gz"):
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]
        elif path.endswith(".zst"):
            from pyarrow import CompressedInputStream

            with io.BufferedReader(CompressedInputStream(file, "zstd")) as unpacked:
                yield unpacked
        else:
            yield file


@contextmanager
def text_of(storage: Storage, path: str, encoding: str) -> Iterator[IO[bytes]]:
    """A file to read text from. What is not text in this encoding is an error that names the line
    and the byte."""
    try:
        with opened(storage, path) as file:
            yield file
    except UnicodeDecodeError as error:
        with opened(storage, path) as again:
            raise not_text(again, path, encoding) from error
