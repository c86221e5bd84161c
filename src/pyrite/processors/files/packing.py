"""Packed files: those whose names end in .gz or .zst are packed when they are written, and unpacked
when they are read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from pyrite.processors.files.storage import Storage

SUFFIXES = {"gzip": ".gz", "zstd": ".zst"}
"""By the names of the compressions of text."""
_GZIP_LEVEL = 6


def packed_end(path: str) -> str:
    """The end of a name that says how the file is packed; empty if it is not."""
    return next((suffix for suffix in SUFFIXES.values() if path.endswith(suffix)), "")


def is_packed(path: str) -> bool:
    return packed_end(path) != ""


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[IO[bytes]]:
    """A file to read from."""
    with storage.open(path, "rb") as file:
        if path.endswith(".gz"):
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]
        elif path.endswith(".zst"):
            from pyarrow import CompressedInputStream

            with io.BufferedReader(CompressedInputStream(file, "zstd")) as unpacked:
                yield unpacked
        else:
            yield file


class NewFile:
    """A file to write to. Equal content makes equal bytes: there is no time in a packed file."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._file = storage.open(path, "wb")
        self._packed: Any = self._file
        if path.endswith(".gz"):
            self._packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, self._file, mtime=0)
        elif path.endswith(".zst"):
            from pyarrow import CompressedOutputStream

            self._packed = CompressedOutputStream(self._file, "zstd")

    def write(self, content: bytes) -> None:
        self._packed.write(content)

    @property
    def size(self) -> int:
        """How many bytes are in the file; a packer holds some back."""
        return self._file.tell()

    def close(self) -> None:
        """May be called again."""
        try:
            self._packed.close()
        finally:
            self._file.close()
