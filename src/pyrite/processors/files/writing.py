"""write_files: a folder of files, as a sink."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.processors.chain import StepSupplier
from pyrite.processors.files.attempts import PART, attempt_folder
from pyrite.processors.files.committing import FolderCommit
from pyrite.processors.files.durable import ResumedCommit
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.known_formats import format_to_write
from pyrite.processors.files.storage import Storage, checked_path, is_url, storage_of
from pyrite.processors.steps import Commit, Sink, Writer


def write_files(
    dir: str | os.PathLike[str], format: str = "text", *, schema: Any = None
) -> StepSupplier:
    """Writes items to files in a folder, `part-00000` and on, one per processor: text lines, CSV or
    Parquet rows from dicts, JSON lines.

    The folder is a path, or a URL that fsspec knows. The files appear when the job has completed,
    and replace those that an earlier job wrote there, which a hidden file `.pyrite-files` lists; a
    job that fails changes nothing. Other files in the folder are left alone: a job that needs the
    name of one is refused, and so is a job while another one writes to the folder.

    All Parquet files of a job have one schema: `schema`, a pyarrow.Schema or a string such as
    "word string, n long"; or the one that fits all rows. Then a column is float if any value is,
    fields that a row lacks are null, and a column that is None in all rows has Arrow's null type.
    Columns are in the order of the fields if all rows agree on it, else in alphabetical order.
    """
    path = checked_path("write_files", dir)
    return StepSupplier(WriteFiles(path, format_to_write(format, schema)))


@dataclass(frozen=True, slots=True)
class WriteFiles(Sink):
    dir: str
    format: Format
    commits = True

    def begin(self, context: MetaSupplierContext) -> Commit:
        return FolderCommit(self.dir, self.format, context)

    def prepare(self, context: MetaSupplierContext) -> None:
        FolderCommit(self.dir, self.format, context, is_durable=True).let_go()

    def resume(self, context: MetaSupplierContext) -> Commit:
        return ResumedCommit(self.dir, self.format, context)

    def discard(self, context: MetaSupplierContext) -> None:
        if storage_of(self.dir).exists(attempt_folder(self.dir, context)):
            self.resume(context).discard()

    def open(self, context: ProcessorContext) -> Writer:
        folder, vertex = attempt_folder(self.dir, context), context.vertex_name
        name = f"{PART}{context.global_index:05d}-{context.attempt}{self.format.suffix}"
        try:
            storage = storage_of(self.dir)
            writer = self.format.writer(storage, folder, name, vertex)
        except FileNotFoundError as error:
            raise ProcessorError(
                f"vertex '{vertex}' cannot write to '{folder}', which was made when the job began: "
                "either the job has ended, or the folder is not shared by all machines that the "
                "job runs on"
            ) from error
        except OSError as error:
            raise ProcessorError(
                f"vertex '{vertex}' cannot write to folder '{self.dir}': {error}"
            ) from error
        if not context.must_repeat:
            return writer
        same = f"{PART}{context.global_index:05d}-{context.start}same{self.format.suffix}"
        return _SameName(writer, storage, folder, same)

    def target(self) -> str:
        return f"folder '{self.dir if is_url(self.dir) else os.path.realpath(self.dir)}'"


class _SameName(Writer):
    """Gives the file of a complete attempt a name that does not depend on the attempt, and so does
    the report. A second attempt replaces the file, which has the same content."""

    def __init__(self, writer: Writer, storage: Storage, folder: str, name: str) -> None:
        self._writer = writer
        self._storage = storage
        self._folder = folder
        self._name = name

    def write(self, items: list[Any]) -> None:
        self._writer.write(items)

    def complete(self) -> Written:
        written: Written = self._writer.complete()
        self._storage.move(f"{self._folder}/{written.name}", f"{self._folder}/{self._name}")
        return replace(written, name=self._name)

    def close(self) -> None:
        self._writer.close()
