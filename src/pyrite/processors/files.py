"""Files as sources and sinks: text, CSV, JSON lines and Parquet.

A sink writes under the execution's own hidden folder; its files get their names only when the whole
job has completed.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten
from pyrite.processors.chain import StepSupplier
from pyrite.processors.formats import FORMATS, Format
from pyrite.processors.lines import Range, blocks_of_lines, ranges_of
from pyrite.processors.steps import Sink, Source, Writer
from pyrite.processors.storage import Found, Storage, is_url, storage_of


def read_files(glob: str | os.PathLike[str], format: str = "text") -> StepSupplier:
    """Emits what is in the files that match a glob pattern: each line of a `text`, each row of a
    `csv` or `parquet` file as a dict, each value of a `jsonl` file. Files whose names end in .gz
    are unpacked on the way. The pattern is a path, or a URL that fsspec knows."""
    return StepSupplier(
        ReadFiles(_checked_path("read_files", glob), _checked_format("read_files", format))
    )


def write_files(dir: str | os.PathLike[str], format: str = "text") -> StepSupplier:
    """Writes items to files in a folder, `part-00000` and on, one per processor: text lines, CSV or
    Parquet rows from dicts, JSON lines.

    The folder is a path, or a URL that fsspec knows. The files appear when the job has completed,
    and replace those that an earlier job wrote there; a job that fails changes nothing.
    """
    return StepSupplier(
        WriteFiles(_checked_path("write_files", dir), _checked_format("write_files", format))
    )


@dataclass(frozen=True, slots=True)
class ReadFiles(Source):
    pattern: str
    format: str
    files: tuple[Found, ...] | None = None
    """The files that match, where they were looked for before: all readers must see the same."""

    def found(self, vertex: str) -> ReadFiles:
        """The same, with the files that match now."""
        storage = storage_of(self.pattern)
        files = storage.find(self.pattern)
        if not files:
            hint = (
                "; it is a folder: write a pattern for the files in it"
                if storage.is_folder(self.pattern)
                else ""
            )
            where = "" if is_url(self.pattern) else f", relative to {os.getcwd()}"
            raise ProcessorError(
                f"no file matches '{self.pattern}', which vertex '{vertex}' reads{where}{hint}"
            )
        return replace(self, files=tuple(files))

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        files = self.files or self.found(context.vertex_name).files
        assert files is not None
        return self._items(files, context.global_index, context.total_parallelism)

    def _items(self, files: Sequence[Found], index: int, count: int) -> Iterator[Any]:
        """A share of what is in the files: ranges of those that can be read in parts, and every
        n-th of the others."""
        format = FORMATS[self.format]
        storage = storage_of(self.pattern)
        in_parts = {
            file.path: file.size
            for file in files
            if format.parse is not None and file.size is not None and not file.path.endswith(".gz")
        }
        for each in ranges_of(list(in_parts.items()), index, count):
            yield from _reading(each.path, _read_range(storage, each, format))
        whole = [file.path for file in files if file.path not in in_parts]
        for path in whole[index::count]:
            yield from _reading(path, _read_whole(storage, path, format))


@dataclass(frozen=True, slots=True)
class WriteFiles(Sink):
    dir: str
    format: str
    commits = True

    def check(self, vertex: str) -> None:
        if is_url(self.dir):
            return  # only the attempt to write can tell
        try:
            folder = Path(self.dir)
            while not folder.exists():
                folder = folder.parent
            if not folder.is_dir():
                raise NotADirectoryError(f"'{folder}' is not a folder")
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"pyrite")
        except OSError as error:
            raise ProcessorError(
                f"vertex '{vertex}' cannot write to folder '{self.dir}': {error}"
            ) from error

    def open(self, context: ProcessorContext) -> Writer:
        storage, attempt, format = (
            storage_of(self.dir),
            self._attempt(context),
            FORMATS[self.format],
        )
        try:
            is_new = not storage.exists(self.dir)
            storage.make_folder(attempt)
            if is_new:
                storage.open(f"{attempt}/{_MADE_FOLDER}", "wb").close()
            name = f"part-{context.global_index:05d}-{context.attempt}{format.suffix}"
            return format.writer(storage.open(f"{attempt}/{name}", "wb"), name, context.vertex_name)
        except OSError as error:
            raise ProcessorError(
                f"vertex '{context.vertex_name}' cannot write to folder '{self.dir}': {error}"
            ) from error

    def commit(self, context: MetaSupplierContext, reports: Sequence[str | None]) -> None:
        """Names the files of the attempts that count, and sets aside those that an earlier job had
        named like them."""
        storage, attempt = storage_of(self.dir), self._attempt(context)
        storage.make_folder(f"{attempt}/{_BEFORE}")
        for name in storage.names(self.dir):
            if _OURS.fullmatch(name):
                if storage.is_folder(f"{self.dir}/{name}"):  # no earlier job's
                    raise ProcessorError(
                        f"vertex '{context.vertex_name}' would have to replace "
                        f"'{self.dir}/{name}', which is a folder; move it away"
                    )
                storage.move(f"{self.dir}/{name}", f"{attempt}/{_BEFORE}/{name}")
        for final, name in self._named(reports).items():
            storage.move(f"{attempt}/{name}", f"{self.dir}/{final}")

    def undo(self, context: MetaSupplierContext, reports: Sequence[str | None]) -> None:
        storage, attempt = storage_of(self.dir), self._attempt(context)
        for final, name in self._named(reports).items():
            if not storage.exists(f"{attempt}/{name}"):
                storage.move(f"{self.dir}/{final}", f"{attempt}/{name}")
        if storage.exists(f"{attempt}/{_BEFORE}"):
            for name in storage.names(f"{attempt}/{_BEFORE}"):
                storage.move(f"{attempt}/{_BEFORE}/{name}", f"{self.dir}/{name}")

    def finish(self, context: MetaSupplierContext) -> None:
        storage_of(self.dir).remove_folder(self._attempt(context))

    def discard(self, context: MetaSupplierContext) -> None:
        storage, attempt = storage_of(self.dir), self._attempt(context)
        if storage.exists(attempt):
            before = f"{attempt}/{_BEFORE}"
            if storage.exists(before) and storage.names(before):
                raise ProcessorError(
                    f"what an earlier job had written to '{self.dir}' could not be put back; it is "
                    f"in '{before}'"
                )
            made_folder = storage.exists(f"{attempt}/{_MADE_FOLDER}")
            storage.remove_folder(attempt)
            if made_folder and storage.exists(self.dir) and not storage.names(self.dir):
                storage.remove_empty_folder(self.dir)

    def target(self) -> str:
        return f"folder '{self.dir if is_url(self.dir) else os.path.realpath(self.dir)}'"

    def _named(self, reports: Sequence[str | None]) -> dict[str, str]:
        """The names of the files of attempts, by the names that they get."""
        suffix = FORMATS[self.format].suffix
        return {f"{name.rsplit('-', 1)[0]}{suffix}": name for name in reports if name is not None}

    def _attempt(self, context: MetaSupplierContext) -> str:
        vertex = re.sub(r"[^\w.-]", "_", context.vertex_name)
        return f"{self.dir}/.pyrite-{context.execution_id}-{vertex}"


_MADE_FOLDER = "made-the-folder"
"""Marks an attempt that made the target folder, and so takes it away if it fails."""
_BEFORE = "before"
"""The folder of an attempt for what an earlier job had written, until all of this one is
committed."""
_SUFFIXES = "|".join(sorted({re.escape(format.suffix) for format in FORMATS.values()}))
_OURS = re.compile(rf"part-[0-9]{{5}}({_SUFFIXES})")
"""The names of what a sink writes, in any format."""


def _read_range(storage: Storage, part: Range, format: Format) -> Iterator[Any]:
    assert format.parse is not None
    where = (
        f"'{part.path}'" if part.start == 0 else f"the part of '{part.path}' from byte {part.start}"
    )
    with storage.open(part.path, "rb") as file:
        lines = chain.from_iterable(blocks_of_lines(file, part.start, part.end))
        yield from format.parse(lines, where)


def _read_whole(storage: Storage, path: str, format: Format) -> Iterator[Any]:
    with ExitStack() as opened:
        file: Any = opened.enter_context(storage.open(path, "rb"))
        if path.endswith(".gz"):
            file = opened.enter_context(gzip.open(file))
        if (
            not format.binary
        ):  # rows of CSV may have line ends in them, which are not ours to change
            newline = None if format.parse is not None else ""
            file = opened.enter_context(
                io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline)
            )
        if format.parse is not None:
            yield from format.parse((line.removesuffix("\n") for line in file), f"'{path}'")
        elif format.read is not None:
            yield from format.read(file, path)


def _reading(path: str, items: Iterator[Any]) -> Iterator[Any]:
    """The items; an error in reading them names the file."""
    try:
        yield from items
    except UnicodeDecodeError as error:
        raise ProcessorError(f"file '{path}' is not UTF-8 text: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ProcessorError(f"file '{path}' cannot be read: {error}") from error


def _checked_path(processor: str, path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InvalidDAG(f"{processor}() needs a path; got {shorten(path)}")
    path = os.fspath(path)
    if is_url(path):
        storage_of(path)  # raises if there is no way to it
        return path.rstrip("/")
    return os.path.abspath(os.path.expanduser(path))  # a worker may stand in another folder


def _checked_format(processor: str, format: str) -> str:
    if format not in FORMATS:
        raise InvalidDAG(
            f"format of {processor}() must be one of {', '.join(FORMATS)}; got {shorten(format)}"
        )
    return format
