"""States in temporary files, as Arrow IPC, in parts by the hash of the key. Each part is grouped on
its own. If it is too large for memory, too, it is spilled again by other bits of the hash."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Final

import pyarrow as pa

from pyrite.columns.hashing import hashes_of
from pyrite.columns.splitting import split

_BITS: Final = 4
PARTS: Final = 1 << _BITS
LEVELS: Final = 32 // _BITS
"""How many times a state can be spilled: then the bits of the hash are used up."""


class Spill:
    def __init__(self, by: Sequence[str], level: int) -> None:
        self._by = by
        self._shift = _BITS * level
        self._files: dict[int, _File] = {}

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            parts = (hashes_of(batch, self._by) >> self._shift) & (PARTS - 1)
            for number, piece in enumerate(split(batch, parts, PARTS)):
                if piece is not None:
                    if number not in self._files:
                        self._files[number] = _File()
                    self._files[number].write(piece)

    def parts(self) -> Iterator[Iterator[pa.RecordBatch]]:
        """The batches of one part after the other. Batches of a key are in one part, in the order
        in which they were added. Nothing can be added before the last part is read."""
        for number in sorted(self._files):
            yield self._files[number].read()

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()


class _File:
    """A file with one IPC stream after the other, each with batches of one schema."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer: Any = None
        self._schema: pa.Schema | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None or not batch.schema.equals(self._schema):
            self._end()
            self._file.seek(0, 2)
            self._schema = batch.schema
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)

    def read(self) -> Iterator[pa.RecordBatch]:
        self._end()
        size = self._file.seek(0, 2)
        self._file.seek(0)
        while self._file.tell() < size:
            with pa.ipc.open_stream(pa.PythonFile(self._file, mode="r")) as stream:
                yield from stream

    def close(self) -> None:
        self._end()
        self._file.close()

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
