"""write_files: a folder of files, as a sink."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.processors.files.attempts import attempt_folder
from pyrite.processors.files.committing import FolderCommit
from pyrite.processors.files.durable import ResumedCommit
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.known_formats import format_to_write
from pyrite.processors.files.layout import PART, Layout, checked_layout
from pyrite.processors.files.parquet import Parquet
from pyrite.processors.files.placing import Files, writer_of
from pyrite.processors.files.storage import checked_path, is_url, storage_of
from pyrite.processors.files.text import Text
from pyrite.processors.loops.steps import Commit, Writer, WriteStep
from pyrite.processors.ready_made import Sink


@overload
def write_files(
    dir: str | os.PathLike[str],
    format: Literal["csv", "parquet"],
    *,
    schema: Any = None,
    partition_by: str | Sequence[str] | Callable[[Any], Any] | None = None,
    target_size: int | None = None,
    compression: str | None = None,
    single_file: bool | str = False,
) -> Sink[Mapping[str, Any]]: ...
@overload
def write_files(
    dir: str | os.PathLike[str],
    format: str = "text",
    *,
    schema: Any = None,
    partition_by: str | Sequence[str] | Callable[[Any], Any] | None = None,
    target_size: int | None = None,
    compression: str | None = None,
    single_file: bool | str = False,
) -> Sink[Any]: ...
def write_files(
    dir: str | os.PathLike[str],
    format: str = "text",
    *,
    schema: Any = None,
    partition_by: str | Sequence[str] | Callable[[Any], Any] | None = None,
    target_size: int | None = None,
    compression: str | None = None,
    single_file: bool | str = False,
) -> Sink[Any]:
    """Writes items to files in a folder, `part-00000` and on, one per processor: text lines, CSV or
    Parquet rows from dicts, JSON lines.

    The folder is a path, or a URL that fsspec knows. The files appear when the job has completed,
    and replace those that an earlier job wrote there, which a hidden file `.pyrite-files` lists; a
    job that fails changes nothing. Other files in the folder are left alone: a job that needs the
    name of one is refused, and so is a job while another one writes to the folder.

    `partition_by` is a field, or several: their values name folders such as `country=DE`, and the
    files in them do not repeat them; or a function of the item, whose result names the folder. With
    `target_size`, a processor begins another file when one has about this many bytes. `compression`
    is `gzip` or `zstd`, and for Parquet also another codec. `single_file=True` makes one file of
    all, or one for each partition; it may be the name of that file.

    All Parquet files of a job have one schema: `schema`, a pyarrow.Schema or a string such as
    "word string, n long"; or the one that fits all rows. Then a column is float if any value is,
    fields that a row lacks are null, and a column that is None in all rows has Arrow's null type.
    Columns are in the order of the fields if all rows agree on it, else in alphabetical order.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     pipe = Pipeline()
    ...     numbers = pipe.read_from([1, 2]).map(lambda n: {"n": n, "square": n * n})
    ...     numbers.write_to(p.write_files(folder, format="jsonl", single_file="numbers.jsonl"))
    ...     pipe.run()
    ...     Path(folder, "numbers.jsonl").read_text().splitlines()
    ['{"n": 1, "square": 1}', '{"n": 2, "square": 4}']
    """
    path = checked_path("write_files", dir)
    checked = format_to_write(format, schema=schema, compression=compression)
    layout = checked_layout(
        "write_files", partition_by, target_size, single_file, suffix=checked.suffix
    )
    if layout.fields and isinstance(checked, Text):
        raise InvalidDAG(
            "partition_by of write_files() names a field, but lines of text have no fields; give a "
            "function of the line"
        )
    if isinstance(checked, Parquet) and layout.is_partitioned:
        checked = checked.partitioned(layout.fields)
    return Sink(WriteFiles(path, checked, layout))


@dataclass(frozen=True, slots=True)
class WriteFiles(WriteStep):
    dir: str
    format: Format
    layout: Layout
    commits = True

    @property
    def takes_text_letters(self) -> bool:
        return isinstance(self.format, Parquet) and self.format.schema is None

    def begin(self, context: MetaSupplierContext) -> Commit:
        return FolderCommit(self.dir, self.format, self.layout, context)

    def prepare(self, context: MetaSupplierContext) -> None:
        FolderCommit(self.dir, self.format, self.layout, context, is_durable=True).let_go()

    def resume(self, context: MetaSupplierContext) -> Commit:
        return ResumedCommit(self.dir, self.format, self.layout, context)

    def discard(self, context: MetaSupplierContext) -> None:
        if storage_of(self.dir).exists(attempt_folder(self.dir, context)):
            self.resume(context).discard()

    def open(self, context: ProcessorContext) -> Writer:
        files = Files(
            storage_of(self.dir),
            attempt_folder(self.dir, context),
            self.format,
            context.vertex_name,
            context.global_index,
            context.attempt,
        )
        writer = self.writer(files)
        return _SameNames(writer, files, context.start) if context.must_repeat else writer

    def writer(self, files: Files) -> Writer:
        """What it completes with is a list of Written."""
        return writer_of(files, self.layout)

    def checker(self, vertex: str) -> Callable[[Any], object] | None:
        return None if self.layout.is_partitioned else self.format.checker(vertex)

    def target(self) -> str:
        return f"folder '{self.dir if is_url(self.dir) else os.path.realpath(self.dir)}'"


class _SameNames(Writer):
    """Gives the files of a complete attempt names that do not depend on the attempt, and so does
    the report. A second attempt replaces the files, which have the same content."""

    def __init__(self, writer: Writer, files: Files, start: str) -> None:
        self._writer = writer
        self._files = files
        self._start = start

    def write(self, items: list[Any]) -> None:
        self._writer.write(items)

    def complete(self) -> list[Written]:
        same = []
        storage, folder = self._files.storage, self._files.folder
        for number, written in enumerate(self._writer.complete()):
            index = f"{self._files.index:05d}" + (f"_{number}" if number else "")
            name = f"{PART}{index}-{self._start}same{self._files.format.suffix}"
            storage.move(f"{folder}/{written.name}", f"{folder}/{name}")
            same.append(replace(written, name=name))
        return same

    def close(self) -> None:
        self._writer.close()
