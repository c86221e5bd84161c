"""CSV files: each row is an item, a dict of strings by the fields of the header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.formats import Format, opened
from pyrite.processors.files.lines import Range
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextWriter
from pyrite.processors.steps import BadItem, Writer

_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Csv(Format):
    """A row may have line ends in it, so a file is read by one reader, from its beginning."""

    suffix = ".csv"

    def read(self, storage: Storage, part: Range) -> Iterator[list[Any]]:
        with (
            opened(storage, part.path) as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
        ):
            rows = _rows(text, part.path)
            while block := list(islice(rows, _ROWS)):
                yield block

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> Writer:
        return _CsvWriter(storage, folder, name, vertex)


def _rows(file: io.TextIOWrapper, path: str) -> Iterator[dict[str, str]]:
    csv.field_size_limit(1 << 30)  # what the writer can write, the reader can read
    rows = csv.reader(file, strict=True)
    try:
        header = next(rows, [])
        if len(set(header)) < len(header):
            raise ProcessorError(
                f"the header of CSV file '{path}' names a field twice: {', '.join(header)}"
            )
        for row in rows:
            if len(row) == len(header):
                yield dict(zip(header, row))
            elif row:  # an empty line is no row
                raise ProcessorError(
                    f"line {rows.line_num} of CSV file '{path}' has {len(row)} fields, but its "
                    f"header has {len(header)}"
                )
    except csv.Error as error:
        raise ProcessorError(
            f"line {rows.line_num} of CSV file '{path}' cannot be read: {error}"
        ) from error
    except UnicodeDecodeError as error:
        raise ProcessorError(
            f"CSV file '{path}' is not UTF-8 text, after line {rows.line_num}: {error}"
        ) from error


class _CsvWriter(TextWriter):
    _fields: Sequence[str] | None = None

    def write(self, items: list[Any]) -> None:
        text = io.StringIO()
        for item in items:
            if not isinstance(item, dict):
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows, so each item must be a dict; got "
                    f"{shorten(item)}",
                    item,
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
        """A row as text, with the names of its fields, which may be what cannot be written."""
        text = io.StringIO()
        csv.writer(text).writerows([item.keys(), [item[field] for field in self._fields or ()]])
        return text.getvalue()
