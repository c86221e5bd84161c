"""How the items of one processor get into files: one, or one after the other, or one for each
partition.

Equal items in an equal order make equal files, however they come in batches: all attempts at the
same work must report the same. So decisions are made after numbers of items that depend on the
items alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten
from pyrite.processors.files.formats import FileWriter, Format, Written, check_row
from pyrite.processors.files.layout import PART, Layout, part_name
from pyrite.processors.files.partitions import NoFolder, folder_of, without
from pyrite.processors.files.storage import Storage
from pyrite.processors.loops.steps import BadItem, Writer
from pyrite.weights import count_of

ITEMS_AT_A_TIME = 1024
MOST_OPEN = 100
"""How many files a processor keeps open."""
MOST_WAITING = 50_000
"""How many items wait for a file, of partitions whose files are not kept open."""


@dataclass(slots=True)
class Files:
    """The files of one processor: makes them in the attempt, and knows where they will be."""

    storage: Storage
    folder: str
    format: Format
    vertex: str
    index: int
    attempt: str
    _made: int = 0
    _in_place: Counter[str] = field(default_factory=Counter)

    def open(self, place: str) -> tuple[FileWriter, str]:
        """A writer of the next file, and the path of that file in the folder of the sink. A place
        is empty, or a folder with a slash at its end."""
        suffix = self.format.suffix
        number = f"_{self._made}" if self._made else ""
        name = f"{PART}{self.index:05d}-{self.attempt}{number}{suffix}"
        target = place + part_name(self.index, self._in_place[place], suffix)
        try:
            writer = self.format.writer(self.storage, self.folder, name, self.vertex)
        except FileNotFoundError as error:
            raise ProcessorError(
                f"vertex '{self.vertex}' cannot write to '{self.folder}', which was made when the "
                "job began: either the job has ended, or the folder is not shared by all machines "
                "that the job runs on"
            ) from error
        except OSError as error:
            raise ProcessorError(
                f"vertex '{self.vertex}' cannot write to folder '{self.folder}': {error}"
            ) from error
        self._made += 1
        self._in_place[place] += 1
        return writer, target


def writer_of(files: Files, layout: Layout) -> Writer:
    """What it completes with is a list of Written."""
    if layout.is_partitioned:
        return _Partitioned(files, layout)
    return InPlace(files, "", layout.target_size)


class InPlace(Writer):
    """Writes to one file; or, with a target size, to the next one when the first has this size."""

    def __init__(self, files: Files, place: str, target_size: int | None) -> None:
        self._files = files
        self._place = place
        self._target_size = target_size
        self._items: list[Any] = []
        self._in_file = 0
        self._done: list[Written] = []
        self._writer: FileWriter | None
        self._writer, self._target = files.open(place)

    def write(self, items: list[Any]) -> None:
        if self._target_size is None:
            self._open().write(items)
            return
        self._items += items
        at = 0
        while at + (count := self._next_count()) <= len(self._items):
            self._write_some(self._items[at : at + count], self._target_size)
            at += count
        del self._items[:at]

    def complete(self) -> list[Written]:
        if self._items:
            self._open().write(self._items)
            self._items = []
        if self._writer is not None:
            self._complete_file(self._writer)
        return self._done

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _next_count(self) -> int:
        """After how many more items the size is looked at: an eighth of those in the file."""
        return min(max(1, self._in_file // 8), ITEMS_AT_A_TIME)

    def _write_some(self, items: list[Any], target_size: int) -> None:
        writer = self._open()
        writer.write(items)
        self._in_file += len(items)
        if writer.is_full(target_size):
            self._complete_file(writer)

    def _open(self) -> FileWriter:
        if self._writer is None:
            self._writer, self._target = self._files.open(self._place)
        return self._writer

    def _complete_file(self, writer: FileWriter) -> None:
        self._done.append(replace(writer.complete(), target=self._target))
        writer.close()
        self._writer, self._in_file = None, 0


class _Partitioned(Writer):
    """Writes the items of each partition to a folder of their own."""

    def __init__(self, files: Files, layout: Layout) -> None:
        self._layout = layout
        self._place = (
            _by_function(layout.function, files.vertex)
            if layout.function is not None
            else _by_fields(layout.fields, files.vertex)
        )
        self._items: list[Any] = []
        self._places = Places(lambda place: InPlace(files, place, layout.target_size))

    def write(self, items: list[Any]) -> None:
        self._items += items
        at = 0
        while at + ITEMS_AT_A_TIME <= len(self._items):
            self._spread(self._items[at : at + ITEMS_AT_A_TIME])
            at += ITEMS_AT_A_TIME
        del self._items[:at]

    def complete(self) -> list[Written]:
        self._spread(self._items)
        self._items = []
        return self._places.complete()

    def close(self) -> None:
        self._places.close()

    def _spread(self, items: list[Any]) -> None:
        groups: dict[str, list[Any]] = {}
        fields = self._layout.fields
        for item in items:
            place = self._place(item)
            groups.setdefault(place, []).append(without(item, fields) if fields else item)
        self._places.write(groups)


class Places:
    """The writers of partitions. The first keep their files open. The items of the others wait
    until there are many, and go to files that are completed at once."""

    def __init__(self, new_writer: Callable[[str], Writer]) -> None:
        self._new_writer = new_writer
        self._open: dict[str, Writer] = {}
        self._waiting: dict[str, list[Any]] = {}
        self._waiting_count = 0
        self._done: list[Written] = []

    def write(self, groups: Mapping[str, list[Any]]) -> None:
        """Writes some items, by their places."""
        for place, group in groups.items():
            if place in self._open or len(self._open) < MOST_OPEN:
                self._writer(place).write(group)
            else:
                self._waiting.setdefault(place, []).extend(group)
                self._waiting_count += count_of(group)
        if self._waiting_count >= MOST_WAITING:
            self._write_waiting()

    def complete(self) -> list[Written]:
        for place in list(self._open):
            self._done += self._open[place].complete()
            del self._open[place]
        self._write_waiting()
        return self._done

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()

    def _write_waiting(self) -> None:
        for place, items in self._waiting.items():
            writer = self._writer(place)
            writer.write(items)
            self._done += writer.complete()
            del self._open[place]
        self._waiting, self._waiting_count = {}, 0

    def _writer(self, place: str) -> Writer:
        if place not in self._open:
            self._open[place] = self._new_writer(place)
        return self._open[place]


def _by_fields(names: tuple[str, ...], vertex: str) -> Callable[[Any], str]:
    known: dict[tuple[Any, ...], str] = {}
    """Places by the values of the fields and their types: 1 and True are equal."""

    def place(item: Any) -> str:
        try:
            values = [item[name] for name in names]
            return known[*values, *map(type, values), type(item)]
        except (KeyError, TypeError, IndexError):
            pass  # a new place, or an item that is not right
        check_row(item, vertex)
        folders = [_folder(item, name, vertex) for name in names]
        made = known[*values, *map(type, values), type(item)] = "".join(f"{f}/" for f in folders)
        return made

    return place


def _folder(item: dict[str, Any], name: str, vertex: str) -> str:
    if name not in item:
        raise BadItem(
            f"vertex '{vertex}' partitions by field '{name}', which an item lacks: {shorten(item)}",
            item,
        )
    try:
        return folder_of(item[name], name)
    except NoFolder as error:
        raise no_folder(vertex, item[name], error, item) from None


def _by_function(function: Callable[[Any], Any], vertex: str) -> Callable[[Any], str]:
    def place(item: Any) -> str:
        try:
            value = function(item)
        except Exception as error:
            raise BadItem(
                f"partition_by of vertex '{vertex}' ({describe(function)}) raised {error!r} for an "
                f"item: {shorten(item)}",
                item,
            ) from error
        try:
            return f"{folder_of(value)}/"
        except NoFolder as error:
            raise no_folder(vertex, value, error, item) from None

    return place


def no_folder(vertex: str, value: Any, why: Exception, item: Any) -> BadItem:
    return BadItem(
        f"vertex '{vertex}' cannot name a folder after {shorten(value)}, because {why}: "
        f"{shorten(item)}",
        item,
    )
