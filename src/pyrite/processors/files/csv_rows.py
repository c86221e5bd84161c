"""CSV files: each row is an item, a dict by the header, of strings or of the types in a
schema."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.csv_types import Column, DoesNotFit
from pyrite.processors.files.decoding import UTF_8
from pyrite.processors.files.formats import Format, check_row, text_of
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextWriter
from pyrite.processors.steps import BadItem, Writer

_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Csv(Format):
    """A row may have line ends in it, so a file is read by one reader, from its beginning."""

    encoding: str = UTF_8
    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    schema: tuple[Column, ...] | None = None
    """The columns that a file must have, and their types; None for whatever it has, as strings."""
    suffix = ".csv"

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        encoding = "utf-8-sig" if self.encoding == UTF_8 else self.encoding
        with (
            text_of(storage, part.path, self.encoding) as file,
            io.TextIOWrapper(file, encoding=encoding, newline="") as text,
        ):
            rows = _Rows(text, part.path)
            if rows.header:  # a file without any line has no rows, whatever they should be
                yield from rows.dicts(self._chosen(rows.header, part.path))

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> Writer:
        return _CsvWriter(storage, folder, name, vertex)

    def _chosen(self, header: Sequence[str], path: str) -> list[Column]:
        """The columns to read. Raises if the file has others than it must have."""
        typed = {column.name: column for column in self.schema or ()}
        if self.schema is not None and self.columns is None:
            for name in header:
                if name not in typed:
                    raise ProcessorError(
                        f"CSV file '{path}' has column '{name}', which schema does not name; add "
                        "it to schema, or choose the columns to read with columns=[...]"
                    )
        names = self.columns or tuple(typed) or header
        for name in names:
            if name not in header:
                raise ProcessorError(
                    f"CSV file '{path}' has no column '{name}'; its columns are {', '.join(header)}"
                )
        return [typed.get(name, Column(name, str)) for name in names]


class _Rows:
    """The rows of a CSV file that is open at its beginning."""

    def __init__(self, file: io.TextIOWrapper, path: str) -> None:
        csv.field_size_limit(1 << 30)  # what the writer can write, the reader can read
        self._rows = csv.reader(file, strict=True)
        self._path = path
        self.header: list[str] = next(self._read(), [])
        if len(set(self.header)) < len(self.header):
            raise ProcessorError(
                f"the header of CSV file '{path}' names a field twice: {', '.join(self.header)}"
            )

    def dicts(self, columns: Sequence[Column]) -> Iterator[list[dict[str, Any]]]:
        """All rows with these columns, a list at a time."""
        names = [column.name for column in columns]
        indexes = [self.header.index(name) for name in names]
        if names == self.header and all(column.is_text for column in columns):
            for rows, _ in self._blocks():
                yield [dict(zip(names, row)) for row in rows]
            return
        for rows, lines in self._blocks():
            texts = list(zip(*rows))
            try:
                values = [column.values(texts[at]) for column, at in zip(columns, indexes)]
            except DoesNotFit as error:
                raise ProcessorError(
                    f"line {lines[error.index]} of CSV file '{self._path}': {error}"
                ) from None
            yield [dict(zip(names, row)) for row in zip(*values)]

    def _blocks(self) -> Iterator[tuple[list[list[str]], list[int]]]:
        """Rows, and the number of the first line of each."""
        rows: list[list[str]] = []
        lines: list[int] = []
        width, before = len(self.header), self._rows.line_num
        for row in self._read():
            if len(row) == width:
                rows.append(row)
                lines.append(before + 1)
            elif row:  # an empty line is no row
                raise ProcessorError(
                    f"line {before + 1} of CSV file '{self._path}' has {len(row)} fields, but its "
                    f"header has {width}"
                )
            before = self._rows.line_num
            if len(rows) == _ROWS:
                yield rows, lines
                rows, lines = [], []
        if rows:
            yield rows, lines

    def _read(self) -> Iterator[list[str]]:
        try:
            yield from self._rows
        except csv.Error as error:
            raise ProcessorError(
                f"line {self._rows.line_num} of CSV file '{self._path}' cannot be read: {error}"
            ) from error


class _CsvWriter(TextWriter):
    _fields: Sequence[str] | None = None

    def write(self, items: list[Any]) -> None:
        text = io.StringIO()
        for item in items:
            check_row(item, self._vertex)
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
