"""The formats in which batches are written. Plain data: it travels with the sink. Loads Arrow only
when there is something to do with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrite.processors.files.formats import FileWriter, Format, Written
from pyrite.processors.files.parquet.format import CODECS
from pyrite.processors.files.storage import Storage
from pyrite.processors.files.text import TextFormat


@dataclass(frozen=True, slots=True)
class ParquetSink(Format):
    codec: str = CODECS[0]

    @property
    def suffix(self) -> str:
        return ".parquet"

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        from pyrite.processors.columns.sinks.file_writers import ParquetFileWriter

        return ParquetFileWriter(storage, folder, name, self.codec)

    def checker(self, vertex: str) -> Callable[[Any], object]:
        return _checker(vertex)

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        from pyrite.processors.columns.sinks.file_writers import rewritten
        from pyrite.processors.columns.sinks.one_schema import one_schema

        schema = one_schema(vertex, written)
        return [
            each
            if schema is None or each.about == schema
            else replace(each, name=rewritten(storage, folder, each.name, schema, self.codec))
            for each in written
        ]

    def join(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written], name: str
    ) -> None:
        from pyrite.processors.files.parquet.pieces import join

        join(storage, folder, [each.name for each in written], name, self.codec)


@dataclass(frozen=True, slots=True)
class CsvSink(TextFormat):
    extension = ".csv"

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        from pyrite.processors.columns.sinks.file_writers import CsvFileWriter

        return CsvFileWriter(storage, folder, name, vertex)

    def checker(self, vertex: str) -> Callable[[Any], object]:
        return _checker(vertex)

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        from pyrite.processors.columns.sinks.file_writers import with_header
        from pyrite.processors.columns.sinks.one_schema import one_schema

        schema = one_schema(vertex, written, in_one_order=True)
        return [
            each
            if schema is None or each.about is not None
            else replace(each, name=with_header(storage, folder, each.name, schema), about=schema)
            for each in written
        ]

    def beginning(self, written: Written) -> bytes:
        from pyrite.processors.columns.sinks.file_writers import header_of

        return b"" if written.about is None else header_of(written.about)


@dataclass(frozen=True, slots=True)
class JsonSink(TextFormat):
    extension = ".jsonl"

    def writer(self, storage: Storage, folder: str, name: str, vertex: str) -> FileWriter:
        from pyrite.processors.columns.sinks.file_writers import JsonFileWriter

        return JsonFileWriter(storage, folder, name, vertex)

    def checker(self, vertex: str) -> Callable[[Any], object]:
        return _checker(vertex)

    def settled(
        self, storage: Storage, folder: str, vertex: str, written: Sequence[Written]
    ) -> Sequence[Written]:
        from pyrite.processors.columns.sinks.one_schema import one_schema

        one_schema(vertex, written)
        return written

    def beginning(self, written: Written) -> bytes:
        return b""


def _checker(vertex: str) -> Callable[[Any], object]:
    from pyrite.processors.columns.sinks.one_schema import check_batch

    return lambda item: check_batch(item, vertex)
