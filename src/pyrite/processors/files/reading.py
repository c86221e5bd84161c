"""read_files: the files that match a pattern, as a source."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, overload

from pyrite.bad_records import BadRecord
from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.processors.files.formats import Format
from pyrite.processors.files.known_formats import format_to_read
from pyrite.processors.files.lines import Range, pieces_of, ranges_of
from pyrite.processors.files.packing import is_packed
from pyrite.processors.files.storage import Found, checked_path, is_url, storage_of
from pyrite.processors.flat import Flat
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.ready_made import Source


@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["text"] = "text",
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[False] = False,
    encoding: str | None = None,
) -> Source[str]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["csv", "parquet"],
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[False] = False,
    encoding: str | None = None,
) -> Source[dict[str, Any]]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["jsonl", "json"],
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[False] = False,
    encoding: str | None = None,
) -> Source[Any]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["text"] = "text",
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[True],
    encoding: str | None = None,
) -> Source[tuple[str, str]]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["csv", "parquet"],
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[True],
    encoding: str | None = None,
) -> Source[tuple[str, dict[str, Any]]]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: Literal["jsonl", "json"],
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: Literal[True],
    encoding: str | None = None,
) -> Source[tuple[str, Any]]: ...
@overload
def read_files(
    glob: str | os.PathLike[str],
    format: str = "text",
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: bool = False,
    encoding: str | None = None,
) -> Source[Any]: ...
def read_files(
    glob: str | os.PathLike[str],
    format: str = "text",
    *,
    schema: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    with_path: bool = False,
    encoding: str | None = None,
) -> Source[Any]:
    """Emits what is in the files that match a glob pattern: each line of a `text`, each row of a
    `csv` or `parquet` file as a dict, each value of a `jsonl` file.

    The pattern is a path, or a URL that fsspec knows. Files whose names end in .gz or .zst are
    unpacked on the way. All processors of the vertex share the work: text and JSON lines are
    divided by bytes, Parquet files by row groups, all other files are read whole.

    `schema` gives the types of CSV columns, such as `{"id": int, "born": date | None}`: int, float,
    bool, str, date, datetime, Decimal, and None for an empty field. Without it all are strings.
    With `columns`, only these columns of CSV and Parquet files and these fields of JSON objects are
    read. With `with_path`, each item is a pair of the file's path and what was read. `encoding` is
    that of text, CSV and JSON lines, UTF-8 unless it is given.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pyrite import Pipeline, processors as p
    >>> with TemporaryDirectory() as folder:
    ...     size = Path(folder, "people.csv").write_text("name,age\\nann,41\\n")
    ...     rows = p.read_files(f"{folder}/*.csv", format="csv", schema={"name": str, "age": int})
    ...     Pipeline().read_from(rows).collect()
    [{'name': 'ann', 'age': 41}]
    """
    path = checked_path("read_files", glob)
    checked = format_to_read(format, columns=columns, schema=schema, encoding=encoding)
    if not isinstance(with_path, bool):
        raise InvalidDAG(f"with_path of read_files() must be True or False; got {with_path!r}")
    return Source(ReadFiles(path, checked, with_path))


@dataclass(frozen=True, slots=True)
class ReadFiles(ReadStep):
    pattern: str
    format: Format
    with_path: bool = False
    """Whether an item is a pair of the path of its file and what was read."""
    files: tuple[Found, ...] | None = None
    """The files that match, where they were looked for before: all readers must see the same."""
    may_hold_none = False
    looks = True

    def found(self, vertex: str, readers: int) -> ReadFiles:
        """The same, with the files that match now."""
        storage = storage_of(self.pattern)
        files = storage.find(self.pattern)
        if not files:
            hint = (
                "; it is a folder: write a pattern for the files in it, such as "
                f"'{self.pattern.rstrip('/')}/*'"
                if storage.is_folder(self.pattern)
                else ""
            )
            where = "" if is_url(self.pattern) else f", relative to {os.getcwd()}"
            raise ProcessorError(
                f"no file matches '{self.pattern}', which vertex '{vertex}' reads{where}{hint}"
            )
        return replace(self, files=tuple(files))

    def going_on(self) -> ReadFiles:
        return replace(self, format=self.format.going_on())

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        found = self if self.files else self.found_once(context)
        return Flat.over(found.blocks(found.share(context)))

    def share(self, context: ProcessorContext) -> Iterator[Range]:
        """What this reader of n reads: ranges of the files that can be read in parts, and every
        n-th of the others."""
        files, index, count = self.files or (), context.global_index, context.total_parallelism
        in_parts = [(file.path, size) for file in files if (size := self._divisible(file))]
        whole = [Range(file.path) for file in files if not self._divisible(file)]
        return chain(ranges_of(in_parts, index, count), whole[index::count])

    def splits(self, files: Sequence[Found], most_bytes: int) -> Iterator[tuple[Range, ...]]:
        """All that is in the files, in splits of at most so many bytes: ranges of a large file,
        several small files, or one file that cannot be divided."""
        split: list[Range] = []
        room = most_bytes
        for file in files:
            size = self._divisible(file)
            pieces = pieces_of(file.path, size, most_bytes) if size else [Range(file.path)]
            needed = most_bytes if file.size is None else -(-file.size // len(pieces))
            for piece in pieces:
                if split and needed > room:
                    yield tuple(split)
                    split, room = [], most_bytes
                split.append(piece)
                room -= needed
        if split:
            yield tuple(split)

    def _divisible(self, file: Found) -> int:
        """The size of a file that can be read in parts; 0 for the others. An empty file has no
        parts, but may not be a file of this format."""
        can_be = self.format.can_be_split and not is_packed(file.path)
        return (file.size or 0) if can_be else 0

    def blocks(self, parts: Iterable[Range]) -> Generator[list[Any], None, None]:
        """What is in parts of files, a list at a time."""
        storage = storage_of(self.pattern)
        for part in parts:
            try:
                for block in self.format.read(storage, part):
                    yield _with_path(part.path, block) if self.with_path else block
            except (OSError, EOFError, zlib.error) as error:
                raise ProcessorError(f"file '{part.path}' cannot be read: {error}") from error


def _with_path(path: str, block: list[Any]) -> list[Any]:
    return [item if type(item) is BadRecord else (path, item) for item in block]
