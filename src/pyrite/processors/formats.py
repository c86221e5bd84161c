"""File formats: how items are read from an open file, and written to one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.processors.steps import BadItem, Writer


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. One whose items are lines has `parse`, and files of it can be read in parts;
    any other has `read`."""

    suffix: str
    writer: Callable[[IO[bytes], str, str], Writer]
    """Made for an open file, its name, which it says when it has completed, and the vertex."""
    parse: Callable[[Iterator[str], str], Iterator[Any]] | None = None
    read: Callable[[IO[Any], str], Iterator[Any]] | None = None
    binary: bool = False


def _parse_text(lines: Iterator[str], where: str) -> Iterator[str]:
    return lines


def _read_csv(file: IO[str], path: str) -> Iterator[dict[str, Any]]:
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


def _parse_jsonl(lines: Iterator[str], where: str) -> Iterator[Any]:
    loads = json.loads
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            yield loads(line)
        except ValueError as error:
            raise ProcessorError(
                f"line {number} of {where} is not JSON: {error}: {shorten(line)}"
            ) from None


def _read_parquet(file: IO[bytes], path: str) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=1024):
            yield from batch.to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise ProcessorError(
            f"file '{path}' is not a Parquet file that can be read: {error}"
        ) from error


class _FileWriter(Writer):
    """A writer of text to one file, which stays open until all is written."""

    def __init__(self, file: IO[bytes], name: str, vertex: str) -> None:
        self._file = io.TextIOWrapper(file, encoding="utf-8", newline="")
        self._name = name
        self._vertex = vertex

    def complete(self) -> str:
        self._file.close()
        return self._name

    def close(self) -> None:
        self._file.close()


class _TextWriter(_FileWriter):
    def write(self, items: list[Any]) -> None:
        lines = []
        for item in items:
            try:
                lines.append(str(item))
            except Exception as error:
                raise BadItem(
                    f"vertex '{self._vertex}' cannot write an item as text: its str() raised "
                    f"{error!r}",
                    item,
                ) from error
        for line in lines:
            if "\n" in line or "\r" in line:
                raise BadItem(
                    f"vertex '{self._vertex}' writes text lines, but got an item with a line break "
                    "in it, which would be read back "
                    f"as two; write it as jsonl: {shorten(line)}",
                    line,
                )
        self._file.write("\n".join(lines) + "\n")


class _JsonLinesWriter(_FileWriter):
    def write(self, items: list[Any]) -> None:
        lines = []
        for item in items:
            try:
                lines.append(json.dumps(item, ensure_ascii=False))
            except (TypeError, ValueError) as error:
                raise BadItem(
                    f"vertex '{self._vertex}' cannot write an item as JSON ({error}): "
                    f"{shorten(item)}",
                    item,
                ) from error
        self._file.write("\n".join(lines) + "\n")


class _CsvWriter(_FileWriter):
    _rows: csv.DictWriter[str] | None = None

    def write(self, items: list[Any]) -> None:
        for item in items:
            if not isinstance(item, dict):
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows, so each item must be a dict; got "
                    f"{shorten(item)}",
                    item,
                )
            if self._rows is None:
                self._rows = csv.DictWriter(self._file, list(item), lineterminator="\r\n")
                self._rows.writeheader()
            if item.keys() != set(self._rows.fieldnames):
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows with the fields "
                    f"{', '.join(self._rows.fieldnames)}, "
                    f"as in the first; got {shorten(item)}",
                    item,
                )
            self._rows.writerow(item)


class _ParquetWriter(Writer):
    """Rows are gathered to row groups. The first group, all of it, sets the schema."""

    ROWS_PER_GROUP = 65536

    def __init__(self, file: IO[bytes], name: str, vertex: str) -> None:
        self._file = file
        self._name = name
        self._vertex = vertex
        self._rows: list[Any] = []
        self._writer: Any = None

    def write(self, items: list[Any]) -> None:
        for item in items:
            if not isinstance(item, dict):
                raise BadItem(
                    f"vertex '{self._vertex}' writes rows, so each item must be a dict; got "
                    f"{shorten(item)}",
                    item,
                )
        self._rows.extend(items)
        if len(self._rows) >= self.ROWS_PER_GROUP:
            self._flush()

    def complete(self) -> str:
        if self._rows or self._writer is None:
            self._flush()
        self.close()
        return self._name

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._file.close()

    def _flush(self) -> None:
        import pyarrow
        import pyarrow.parquet

        rows, self._rows = self._rows, []
        names = dict.fromkeys(name for row in rows for name in row)
        schema = None if self._writer is None else self._writer.schema
        if schema is not None and any(name not in schema.names for name in names):
            raise ProcessorError(
                f"vertex '{self._vertex}' got rows with fields that none of the first "
                f"{self.ROWS_PER_GROUP} had: "
                f"{', '.join(sorted(set(names) - set(schema.names)))}; give every row all fields"
            )
        columns = {
            name: [row.get(name) for row in rows]
            for name in (schema.names if schema is not None else names)
        }
        try:
            table = pyarrow.Table.from_pydict(columns, schema=schema)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot write rows of differing types to Parquet: {error}"
            ) from error
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)


FORMATS: dict[str, Format] = {
    "text": Format(".txt", _TextWriter, parse=_parse_text),
    "csv": Format(".csv", _CsvWriter, read=_read_csv),
    "jsonl": Format(".jsonl", _JsonLinesWriter, parse=_parse_jsonl),
    "json": Format(".jsonl", _JsonLinesWriter, parse=_parse_jsonl),
    "parquet": Format(".parquet", _ParquetWriter, read=_read_parquet, binary=True),
}
