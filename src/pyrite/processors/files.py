"""Files as sources and sinks: text, CSV, JSON lines and Parquet.

A sink writes under the execution's own hidden folder; its files get their names only when the whole job has completed.
"""

from __future__ import annotations

import glob as globbing
import gzip
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


def read_files(glob: str | os.PathLike[str], format: str = "text") -> StepSupplier:
    """Emits what is in the files that match a glob pattern: each line of a `text`, each row of a `csv` or `parquet` file as a dict, each
    value of a `jsonl` file. Files whose names end in .gz are unpacked on the way."""
    return StepSupplier(ReadFiles(_checked_path("read_files", glob), _checked_format("read_files", format)))


def write_files(dir: str | os.PathLike[str], format: str = "text") -> StepSupplier:
    """Writes items to files in a folder, `part-00000` and on, one per processor: text lines, CSV or Parquet rows from dicts, JSON lines.

    The files appear when the job has completed, and replace those that an earlier job wrote there; a job that fails changes nothing.
    """
    return StepSupplier(WriteFiles(_checked_path("write_files", dir), _checked_format("write_files", format)))


@dataclass(frozen=True, slots=True)
class ReadFiles(Source):
    pattern: str
    format: str

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        paths = sorted(path for path in globbing.glob(self.pattern, recursive=True) if os.path.isfile(path))
        if not paths:
            hint = "; it is a folder: write a pattern for the files in it" if os.path.isdir(self.pattern) else ""
            raise ProcessorError(
                f"no file matches '{self.pattern}', which vertex '{context.vertex_name}' reads, relative to {os.getcwd()}{hint}"
            )
        return self._items(paths, context.global_index, context.total_parallelism)

    def _items(self, paths: list[str], index: int, count: int) -> Iterator[Any]:
        """A share of what is in the files: ranges of those that can be read in parts, and every n-th of the others."""
        format = FORMATS[self.format]
        in_parts = [path for path in paths if format.parse is not None and not path.endswith(".gz")]
        for each in ranges_of([(path, os.path.getsize(path)) for path in in_parts], index, count):
            yield from _reading(each.path, _read_range(each, format))
        whole = [path for path in paths if path not in set(in_parts)]
        for path in whole[index::count]:
            yield from _reading(path, _read_whole(path, format))


@dataclass(frozen=True, slots=True)
class WriteFiles(Sink):
    dir: str
    format: str
    commits = True

    def check(self, vertex: str) -> None:
        try:
            folder = Path(self.dir)
            while not folder.exists():
                folder = folder.parent
            if not folder.is_dir():
                raise NotADirectoryError(f"'{folder}' is not a folder")
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"pyrite")
        except OSError as error:
            raise ProcessorError(f"vertex '{vertex}' cannot write to folder '{self.dir}': {error}") from error

    def open(self, context: ProcessorContext) -> Writer:
        try:
            folder = self._attempt(context)
            is_new = not folder.parent.exists()
            folder.mkdir(parents=True, exist_ok=True)
            if is_new:
                (folder / _MADE_FOLDER).touch()
            name = f"part-{context.global_index:05d}-{context.attempt}{FORMATS[self.format].suffix}"
            return FORMATS[self.format].writer(folder / name, context.vertex_name)
        except OSError as error:
            raise ProcessorError(f"vertex '{context.vertex_name}' cannot write to folder '{self.dir}': {error}") from error

    def commit(self, context: MetaSupplierContext, reports: Sequence[str | None]) -> None:
        """Names the files of the attempts that count, and removes those that an earlier job had named like them."""
        attempt, folder, suffix = self._attempt(context), Path(self.dir), FORMATS[self.format].suffix
        named = {f"{name.rsplit('-', 1)[0]}{suffix}": name for name in reports if name is not None}
        for final, name in named.items():
            os.replace(attempt / name, folder / final)
        for stale in folder.glob("part-[0-9][0-9][0-9][0-9][0-9].*"):
            if stale.name not in named and stale.suffix in _SUFFIXES:
                stale.unlink()
        shutil.rmtree(attempt)

    def discard(self, context: MetaSupplierContext) -> None:
        attempt = self._attempt(context)
        if attempt.exists():
            made_folder = (attempt / _MADE_FOLDER).exists()
            shutil.rmtree(attempt)
            if made_folder and not any(Path(self.dir).iterdir()):
                os.rmdir(self.dir)

    def target(self) -> str:
        return f"folder '{os.path.realpath(self.dir)}'"

    def _attempt(self, context: MetaSupplierContext) -> Path:
        vertex = re.sub(r"[^\w.-]", "_", context.vertex_name)
        return Path(self.dir) / f".pyrite-{context.execution_id}-{vertex}"


_MADE_FOLDER = "made-the-folder"
"""Marks an attempt that made the target folder, and so takes it away if it fails."""
_SUFFIXES = {format.suffix for format in FORMATS.values()}


def _read_range(part: Range, format: Format) -> Iterator[Any]:
    assert format.parse is not None
    where = f"'{part.path}'" if part.start == 0 else f"the part of '{part.path}' from byte {part.start}"
    with open(part.path, "rb") as file:
        lines = chain.from_iterable(blocks_of_lines(file, part.start, part.end))
        yield from format.parse(lines, where)


def _read_whole(path: str, format: Format) -> Iterator[Any]:
    opened: Any = gzip.open if path.endswith(".gz") else open
    if format.parse is not None:
        with opened(path, "rt", encoding="utf-8-sig") as text:
            yield from format.parse((line.removesuffix("\n") for line in text), f"'{path}'")
    elif format.read is not None:
        how = {"mode": "rb"} if format.binary else {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
        with opened(path, **how) as file:
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
    return os.path.abspath(os.path.expanduser(os.fspath(path)))  # a worker may stand in another folder


def _checked_format(processor: str, format: str) -> str:
    if format not in FORMATS:
        raise InvalidDAG(f"format of {processor}() must be one of {', '.join(FORMATS)}; got {shorten(format)}")
    return format
