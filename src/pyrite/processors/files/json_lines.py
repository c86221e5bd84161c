"""JSON lines: each line of a file is an item, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyrite.bad_records import DeadLetter, repr_of
from pyrite.functions import shorten
from pyrite.processors.files.bad_lines import Place, bad_text, holds_bad_text
from pyrite.processors.files.field_types import Column, folder_fields
from pyrite.processors.files.formats import FileWriter
from pyrite.processors.files.lines import Range, blocks_of_lines
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextFormat, TextWriter, check_encoding
from pyrite.processors.loops.steps import BadItem

_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class JsonLines(TextFormat):
    columns: tuple[str, ...] | None = None
    """The fields of the objects to read; None for all that is there, whatever it is."""
    folders: tuple[Column, ...] = ()
    """The types of fields that are in the names of folders; the others are strings."""
    extension = ".jsonl"

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        folders = folder_fields(part.path, self.folders)
        place = Place(storage, part, self.encoding)
        with self.text_of(storage, part.path) as file:
            for lines in blocks_of_lines(file, part, self.encoding, self.decoding_errors):
                try:
                    items = self._items(lines, folders)
                except _BadLine as bad:
                    if not self.goes_on:
                        raise place.bad_line(bad.index, "", str(bad)).error from None
                    items = self._good_and_bad(lines, folders, place)
                yield items
                place.passed(len(lines))

    def _items(self, lines: Sequence[str], folders: Mapping[str, Any]) -> list[Any]:
        if self.goes_on and holds_bad_text(lines):
            for index, line in enumerate(lines):
                if (why := bad_text(line, self.encoding)) is not None:
                    raise _BadLine(index, why)
        values = _values(lines)
        if folders:
            values = [{**folders, **v} if isinstance(v, dict) else v for v in values]
        return values if self.columns is None else _chosen(values, self.columns, lines)

    def _good_and_bad(
        self, lines: Sequence[str], folders: Mapping[str, Any], place: Place
    ) -> list[Any]:
        items: list[Any] = []
        for index, line in enumerate(lines):
            try:
                items += self._items([line], folders)
            except _BadLine as bad:
                items.append(place.bad_line(index, line, str(bad)))
        return items

    def checker(self, vertex: str) -> Callable[[Any], object]:
        return partial(_check_json, vertex)

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        return _JsonLinesWriter(storage, folder, name, vertex)


class _BadLine(Exception):
    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def _values(lines: Sequence[str]) -> list[Any]:
    """The values of some lines. Most need no more than `raw_decode`, which takes no white space
    around a value."""
    values = []
    for index, line in enumerate(lines):
        try:
            value, end = _decode(line)
        except (ValueError, RecursionError):
            end = -1
        if end != len(line):
            if not line or line.isspace():
                continue
            try:
                value = json.loads(line)
            except ValueError as error:
                raise _BadLine(index, f"is not JSON: {error}: {shorten(line)}") from None
            except RecursionError:
                raise _BadLine(index, f"is nested too deeply: {shorten(line)}") from None
        if value is None:
            raise _BadLine(
                index, "is null, and None cannot be an item; remove the line, or wrap it: [null]"
            )
        values.append(value)
    return values


def _chosen(
    values: Sequence[Any], columns: Sequence[str], lines: Sequence[str]
) -> list[dict[str, Any]]:
    """The values, which must be objects, with these fields only."""
    try:
        return [{name: value.get(name) for name in columns} for value in values]
    except AttributeError:
        for index, line in enumerate(lines):
            if any(not isinstance(value, dict) for value in _values([line])):
                raise _BadLine(
                    index,
                    f"is not an object, so it has no columns: {shorten(line)}; leave out columns= "
                    "of read_files()",
                ) from None
        raise


def _check_json(vertex: str, item: Any) -> None:
    check_encoding(_line(item, vertex), item, vertex)


def _line(item: Any, vertex: str) -> str:
    if type(item) is DeadLetter:
        return _letter(item)
    try:
        return _encode(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadItem(
            f"vertex '{vertex}' cannot write an item as JSON ({error}): {shorten(item)}", item
        ) from error


def _letter(letter: DeadLetter) -> str:
    """A dead letter can always be written: its item may be bad just because JSON cannot express it.
    Then it becomes its repr."""
    try:
        return json.dumps(letter)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({**letter, "item": repr_of(letter.item)})


class _JsonLinesWriter(TextWriter):
    def write(self, items: list[Any]) -> None:
        line = partial(_line, vertex=self._vertex)
        encode = line if type(items[0]) is DeadLetter else _encode
        try:
            text = "\n".join(map(encode, items)) + "\n"
        except (TypeError, ValueError, RecursionError):
            text = "\n".join(map(line, items)) + "\n"
        self.write_text(text, items, line)
