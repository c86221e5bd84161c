"""CSV files: each row is an item, a dict by the header, of strings or of the types in a
schema."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat
from typing import Any

from pyrite.bad_records import BadRecord
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.bad_lines import bad_line, bad_text, holds_bad_text
from pyrite.processors.files.decoding import UTF_8
from pyrite.processors.files.field_types import Column, DoesNotFit
from pyrite.processors.files.formats import FileWriter, Written, check_row
from pyrite.processors.files.lines import Range
from pyrite.processors.files.packing import opened
from pyrite.processors.files.partitions import fields_of
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextFormat, TextWriter, with_mark
from pyrite.processors.loops.steps import BadItem

_ROWS = 256
"""At a time. With more than some 500 of them the garbage collector runs while they are held, and
takes a third of the time."""
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Csv(TextFormat):
    """A row may have line ends in it, so a file is read by one reader, from its beginning."""

    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    schema: tuple[Column, ...] | None = None
    """The columns that a file must have, and their types; None for whatever it has, as strings."""
    extension = ".csv"

    @property
    def can_be_split(self) -> bool:
        return False

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        encoding = "utf-8-sig" if self.encoding == UTF_8 else self.encoding
        with (
            self.text_of(storage, part.path) as file,
            io.TextIOWrapper(
                file, encoding=encoding, errors=self.decoding_errors, newline=""
            ) as text,
        ):
            rows = _Rows(text, part.path, goes_on=self.goes_on, encoding=self.encoding)
            if rows.header:  # an empty file has no rows, whatever they should be
                yield from rows.dicts(self._chosen(rows, part.path))

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        return _CsvWriter(storage, folder, name, vertex)

    def join(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written], name: str
    ) -> None:
        headers = [_fields(each.about) for each in written if each.about]
        for fields in headers:
            if set(fields) != set(headers[0]):
                raise ProcessorError(
                    f"vertex '{vertex}' cannot write one CSV file, because some rows have the "
                    f"fields {', '.join(headers[0])}, and others {', '.join(fields)}"
                )
        # Not super(): a dataclass with slots is another class than the one that is defined here.
        TextFormat.join(self, storage, folder, vertex, written, name)

    def blocks(
        self, storage: Storage, path: str, written: Written, after: Written | None
    ) -> Iterator[bytes]:
        if after is None or written.about in (after.about, b""):
            yield from TextFormat.blocks(self, storage, path, written, after)
            return
        fields = _fields(after.about)  # the same, in another order
        with opened(storage, path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            rows = _Rows(text, path)
            order = [rows.header.index(field) for field in fields]
            for block in rows.blocks():
                made = io.StringIO()
                csv.writer(made).writerows([[row[at] for at in order] for row in block.rows])
                yield made.getvalue().encode()

    def beginning(self, written: Written) -> bytes:
        return written.about or b""

    def _chosen(self, rows: _Rows, path: str) -> list[Column]:
        """The columns to read. Raises if the file has others than it must have."""
        typed = {column.name: column for column in self.schema or ()}
        if self.schema is not None and self.columns is None:
            unknown = [name for name in rows.header if name not in typed]
            if unknown:
                raise ProcessorError(
                    f"CSV file '{path}' has {_named(unknown)}, which schema does not name; add to "
                    "schema, or choose the columns to read with columns=[...]"
                )
        there = [*rows.header, *rows.folders]
        names = self.columns or tuple(typed) or there
        missing = [name for name in names if name not in there]
        if missing:
            raise ProcessorError(
                f"CSV file '{path}' has no {_named(missing)}; its columns are {', '.join(there)}"
            )
        return [typed.get(name, Column(name, str)) for name in names]


def _named(columns: Sequence[str]) -> str:
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(map(repr, columns))}"


def _fields(header: bytes) -> list[str]:
    return next(csv.reader(io.StringIO(header.decode("utf-8-sig"), newline="")))


class _Rows:
    """The rows of a CSV file that is open at its beginning."""

    def __init__(
        self, file: io.TextIOWrapper, path: str, *, goes_on: bool = False, encoding: str = UTF_8
    ) -> None:
        csv.field_size_limit(1 << 30)  # what the writer can write, the reader can read
        self._unread = iter(file)
        self._again: deque[str] = deque()  # lines to be read again
        self._rows = csv.reader(self._lines() if goes_on else file, strict=True)
        self._path = path
        self._goes_on = False  # without its header, a file cannot be read
        self._encoding = encoding
        self._bad: list[BadRecord] = []
        self._taken: list[str] = []  # the lines of the row that is being read
        self._passed = 0  # the lines before them
        self.header: list[str] = []
        while not self.header and (first := self._next_rows(1)):  # an empty line is no header
            self.header = first[0]
        if len(set(self.header)) < len(self.header):
            raise ProcessorError(
                f"the header of CSV file '{path}' names a field twice: {', '.join(self.header)}"
            )
        self.folders = {
            name: value or "" for name, value in fields_of(path).items() if name not in self.header
        }
        """The fields that are in the names of the file's folders."""
        self._goes_on = goes_on
        self._row_ends()

    def dicts(self, columns: Sequence[Column]) -> Iterator[list[Any]]:
        """All rows with these columns, a list at a time; and a bad record for each row that cannot
        be read, if the reader goes on."""
        for rows in self._dicts(columns):
            yield rows + self._bad if self._bad else rows
            self._bad = []
        if self._bad:
            yield self._bad

    def _dicts(self, columns: Sequence[Column]) -> Iterator[list[Any]]:
        names = [column.name for column in columns]
        if names == self.header and all(column.is_text for column in columns):
            for block in self.blocks():
                yield [dict(zip(names, row)) for row in block.rows]
            return
        same = {
            column.name: column.in_folder(self.folders[column.name], self._path)
            for column in columns
            if column.name in self.folders
        }
        indexes = {name: index for index, name in enumerate(self.header)}

        def typed(rows: Sequence[Sequence[str]]) -> list[Any]:
            texts = list(zip(*rows))
            values = [
                repeat(same[column.name])
                if column.name in same
                else column.values(texts[indexes[column.name]])
                for column in columns
            ]
            # The rows tell how many there are, if all columns are in folders.
            return [dict(zip(names, row)) for row in zip(*values, rows)]

        for block in self.blocks():
            try:
                made = typed(block.rows)
            except DoesNotFit as error:
                if not self._goes_on:
                    raise self._bad_row(block, error.index, f": {error}").error from None
                made = []
                for index, row in enumerate(block.rows):
                    try:
                        made += typed([row])
                    except DoesNotFit as unfit:
                        self._bad.append(self._bad_row(block, index, f": {unfit}"))
            yield made

    def blocks(self) -> Iterator[_Block]:
        width, before = len(self.header), self._lines_read()
        while (read := self._next_rows(_ROWS)) is not None:
            block = _Block(before, read)
            if not block.all_have(width):
                self._take_out(
                    block,
                    lambda row: (
                        f" has {len(row)} fields, but its header has {width}"
                        if len(row) != width
                        else None
                    ),
                )
            if self._goes_on and any(map(holds_bad_text, block.rows)):
                self._take_out(
                    block,
                    lambda row: (
                        f" {why}"
                        if (why := bad_text(_text_of(row), self._encoding)) is not None
                        else None
                    ),
                )
            if block.rows:
                yield block
            before = self._lines_read()

    def _lines_read(self) -> int:
        return self._passed if self._goes_on else self._rows.line_num

    def _take_out(self, block: _Block, wrong: Callable[[list[str]], str | None]) -> None:
        """Removes the rows of which `wrong` says what is wrong with them. Raises for the first one
        if the reader does not go on."""
        whys = [wrong(row) for row in block.rows]
        bad = [self._bad_row(block, n, why) for n, why in enumerate(whys) if why is not None]
        if bad and not self._goes_on:
            raise bad[0].error
        self._bad += bad
        block.keep([why is None for why in whys])

    def _bad_row(self, block: _Block, index: int, why: str) -> BadRecord:
        line = block.line_of(index)
        message = f"line {line} of CSV file '{self._path}'{why}"
        return bad_line(self._path, line, _text_of(block.rows[index]), message)

    def _next_rows(self, most: int) -> list[list[str]] | None:
        """The next rows; None at the end of the file. If the reader goes on, the first line of a
        row that cannot be read is a bad record, and the next row begins in the line after it: a
        quote that is not closed has taken all lines up to the next one."""
        rows: list[list[str]] = []
        try:
            if self._goes_on:
                rows.extend(islice(self._one_by_one(), most))
            else:
                rows += islice(self._rows, most)
        except csv.Error as error:
            line = self._passed + 1 if self._goes_on else self._rows.line_num
            message = f"line {line} of CSV file '{self._path}' cannot be read: {error}"
            if not self._goes_on:
                raise ProcessorError(message) from error
            first, *others = self._taken
            self._bad.append(bad_line(self._path, line, first.rstrip("\r\n"), message))
            self._again.extendleft(reversed(others))
            self._taken = [first]
            self._row_ends()
            self._rows = csv.reader(self._lines(), strict=True)  # the other one may be at its end
            return rows
        return rows or None

    def _one_by_one(self) -> Iterator[list[str]]:
        for row in self._rows:
            self._row_ends()
            yield row

    def _row_ends(self) -> None:
        self._passed += len(self._taken)
        self._taken = []

    def _lines(self) -> Iterator[str]:
        """The lines of the file. Those of the row that is being read are kept for a bad record."""
        while line := self._again.popleft() if self._again else next(self._unread, ""):
            self._taken.append(line)
            yield line


def _text_of(row: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue().rstrip("\r\n")


class _Block:
    """Some rows, and the lines of the file that they begin in."""

    def __init__(self, lines_before: int, read: list[list[str]]) -> None:
        self._lines_before = lines_before
        self._read = read
        self.rows = read if all(read) else [row for row in read if row]  # an empty line is no row
        self._kept: Sequence[int] = range(len(self.rows))
        """The numbers of the rows that are left, among all that are not empty."""

    def keep(self, chosen: Sequence[bool]) -> None:
        """Keeps the chosen rows only."""
        self._kept = [n for n, is_kept in zip(self._kept, chosen) if is_kept]
        self.rows = [row for row, is_kept in zip(self.rows, chosen) if is_kept]

    def all_have(self, width: int) -> bool:
        return set(map(len, self.rows)) <= {width}

    def line_of(self, index: int) -> int:
        """The number of the first line of a row. It is only asked for when there is an error, so it
        is found by counting."""
        line, index = self._lines_before + 1, self._kept[index]
        for row in self._read:
            if row and index == 0:
                break
            index -= 1 if row else 0
            line += 1 + sum(len(_LINE_END.findall(field)) for field in row)
        return line


class _CsvWriter(TextWriter):
    """Says what its header is: files with the same can become one."""

    _fields: Sequence[str] | None = None

    def complete(self) -> Written:
        text = io.StringIO()
        if self._fields is not None:
            csv.writer(text).writerow(self._fields)
        return replace(super().complete(), about=with_mark(text.getvalue()).encode())

    def write(self, items: list[Any]) -> None:
        text = io.StringIO()
        for item in items:
            check_row(item, self._vertex)
            if not item:
                raise BadItem(
                    f"vertex '{self._vertex}' cannot write a row without any field as CSV", item
                )
            if self._fields is None:
                self._fields = list(item)
                csv.writer(text).writerow(self._fields)
                self._keys = dict.fromkeys(self._fields).keys()
            if item.keys() != self._keys:
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows with the fields "
                    f"{', '.join(map(str, self._fields))}, as in the first; got {shorten(item)}",
                    item,
                )
        self._write_rows(text, items)
        self.write_text(text.getvalue(), items, self._row)

    def _write_rows(self, text: io.StringIO, items: Sequence[dict[str, Any]]) -> None:
        fields = self._fields or ()
        try:
            csv.writer(text).writerows([[item[field] for field in fields] for item in items])
        except Exception as error:
            for item in items:
                try:
                    self._row(item)
                except Exception as raised:
                    raise BadItem(
                        f"vertex '{self._vertex}' cannot write a row as CSV ({raised!r}): "
                        f"{shorten(item)}",
                        item,
                    ) from error
            raise

    def _row(self, item: dict[str, Any]) -> str:
        """A row as text, below the names of its fields: a name may be the text that cannot be
        encoded."""
        text = io.StringIO()
        csv.writer(text).writerows([item.keys(), [item[field] for field in self._fields or ()]])
        return text.getvalue()
