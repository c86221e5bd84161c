"""What a file format is: how items are read from files of it, and written to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.functions import shorten
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage
from pyrite.processors.loops.steps import BadItem, Writer


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a writer has completed: its name in the attempt, and what the format wants to
    know about it at the commit."""

    name: str
    about: Any = None
    target: str = ""
    """The path that the file gets in the folder of the sink."""
    is_empty: bool = False
    """Whether it has no rows, if the format knows."""


class FileWriter(Writer):
    """Writes items to one file."""

    def complete(self) -> Written:
        raise NotImplementedError

    def is_full(self, size: int) -> bool:
        """Whether the file has about this many bytes, or more. May write what is held back."""
        raise NotImplementedError


class Format:
    """A file format. Plain data: it travels with the step that uses it."""

    __slots__ = ()

    @property
    def suffix(self) -> str:
        raise NotImplementedError

    @property
    def can_be_split(self) -> bool:
        """Whether several readers can share one file, each with a range of its bytes."""
        return False

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        """The items that begin in a part of a file, a list at a time. No item is None."""
        raise NotImplementedError

    def going_on(self) -> Format:
        """The same format, except that `read` has a BadRecord for each line that it cannot read,
        if its files have lines."""
        return self

    def checker(self, vertex: str) -> Callable[[Any], object] | None:
        """A function that raises BadItem for an item that no file of this format can have; None if
        that depends on other items."""
        return None

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        """Writes to a new file in a folder."""
        raise NotImplementedError

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        """The files to commit, when all writers have completed."""
        return written

    def join(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written], name: str
    ) -> None:
        """Writes all that is in some settled files of a folder, in their order, to a new one."""
        raise NotImplementedError


def check_row(item: Any, vertex: str) -> None:
    """Raises BadItem if an item cannot be a row."""
    if not isinstance(item, dict):
        raise BadItem(
            f"vertex '{vertex}' writes rows, so each item must be a dict; got {shorten(item)}",
            item,
        )
