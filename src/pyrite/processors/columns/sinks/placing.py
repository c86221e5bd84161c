"""How the batches of one processor get into files: rows of one schema, in groups of one size, to
one file, or one after the other, or one for each partition."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.frames import as_batch, empty_batch
from pyrite.columns.packing.splitting import order_of
from pyrite.processors.columns.sinks.one_schema import OneSchema
from pyrite.processors.columns.sinks.row_groups import RowGroups
from pyrite.processors.files.formats import Written
from pyrite.processors.files.layout import Layout
from pyrite.processors.files.partitions import NoFolder, folder_of
from pyrite.processors.files.placing import Files, InPlace, Places, no_folder
from pyrite.processors.loops.steps import BadItem, Writer

GROUP_BYTES: Final = 1 << 26
"""About how many bytes a group of rows has in memory."""
GROUP_BYTES_OF_MANY: Final = 1 << 23
"""The same, if many files are open."""
WINDOW: Final = 1 << 16
"""How many rows are divided among partitions at a time."""


def writer_of(files: Files, layout: Layout, schema: pa.Schema | None) -> Writer:
    """What it completes with is a list of Written."""
    writer = (
        _Partitioned(files, layout)
        if layout.is_partitioned
        else _InPlace(files, "", layout.target_size, GROUP_BYTES)
    )
    if schema is not None:  # the files of a processor that gets no batch have its columns, too
        writer.write([empty_batch(schema)])
    return _OfOneSchema(writer, OneSchema(files.vertex, schema))


class _OfOneSchema(Writer):
    def __init__(self, writer: Writer, schema: OneSchema) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, items: list[Any]) -> None:
        self._writer.write([self._schema.fit(item) for item in items])

    def complete(self) -> Any:
        return self._writer.complete()

    def close(self) -> None:
        self._writer.close()


class _InPlace(InPlace):
    """Writes batches in groups of rows, and looks at the size of the file after each."""

    def __init__(self, files: Files, place: str, target_size: int | None, group_bytes: int) -> None:
        super().__init__(files, place, target_size)
        size = group_bytes if target_size is None else min(group_bytes, target_size // 2)
        self._groups = RowGroups(size=size)
        self._has_schema = False

    def write(self, items: list[Any]) -> None:
        for batch in items:
            for group in self._groups.add(batch):
                self._write_group(group)

    def complete(self) -> list[Written]:
        rest = self._groups.rest()
        if rest is not None and (rest.num_rows or not self._has_schema):
            self._write_group(rest)
        return super().complete()

    def _write_group(self, group: pa.Table) -> None:
        self._has_schema = True
        if self._target_size is None:
            self._open().write([group])
        else:
            self._write_some([group], self._target_size)


class _Partitioned(Writer):
    """Writes the rows of each partition to a folder of their own."""

    def __init__(self, files: Files, layout: Layout) -> None:
        self._vertex = files.vertex
        self._fields = layout.fields
        self._windows = RowGroups(rows=WINDOW)
        self._places = Places(
            lambda place: _InPlace(files, place, layout.target_size, GROUP_BYTES_OF_MANY)
        )

    def write(self, items: list[Any]) -> None:
        for batch in items:
            for window in self._windows.add(batch):
                self._spread(window)

    def complete(self) -> list[Written]:
        rest = self._windows.rest()
        if rest is not None and rest.num_rows:
            self._spread(rest)
        return self._places.complete()

    def close(self) -> None:
        self._places.close()

    def _spread(self, window: pa.Table) -> None:
        batch = as_batch(window)
        codes, places = self._coded(batch)
        rest = batch.drop_columns(list(self._fields))
        if not rest.num_columns:
            raise BadItem(
                f"vertex '{self._vertex}' partitions by all columns that a batch has, so that "
                "nothing is left to write to the files",
                batch,
            )
        if len(places) == 1:
            self._places.write({places[0]: [rest]})
            return
        # Not slices: those would keep all rows of the window in memory.
        ends = np.cumsum(np.bincount(codes, minlength=len(places)))[:-1]
        rows = np.split(order_of(codes, len(places)), ends)
        self._places.write({place: [rest.take(pa.array(of))] for place, of in zip(places, rows)})

    def _coded(self, batch: pa.RecordBatch) -> tuple[Any, list[str]]:
        """For each row the number of its place, and the places."""
        codes: Any = np.zeros(batch.num_rows, np.int64)
        places = [""]
        for name in self._fields:
            if name not in batch.schema.names:
                raise BadItem(
                    f"vertex '{self._vertex}' partitions by column '{name}', which a batch lacks; "
                    f"its columns are {', '.join(batch.schema.names)}",
                    batch,
                )
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            folders = [self._folder(value, name, batch) for value in encoded.dictionary.to_pylist()]
            both = codes * len(folders) + np.asarray(encoded.indices)
            used, codes = np.unique(both, return_inverse=True)
            places = [
                f"{places[code // len(folders)]}{folders[code % len(folders)]}/"
                for code in used.tolist()
            ]
        return codes, places

    def _folder(self, value: Any, name: str, batch: pa.RecordBatch) -> str:
        try:
            return folder_of(value, name)
        except NoFolder as error:
            raise no_folder(self._vertex, value, error, batch) from None
