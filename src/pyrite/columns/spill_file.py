"""Batches on disk, in numbered parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pyarrow as pa

from pyrite.columns.packing.ipc import packed_buffer, unpacked
from pyrite.columns.packing.splitting import Pieces

LEAST_BYTES = 16 << 10
"""Smaller pieces of a part are put together before they are written."""


class Tally:
    """How many bytes all files of one step have taken."""

    written = 0


class SpillFile:
    """Parts of batches in a temporary file, as Arrow IPC. A part gives its rows in the order in
    which they were added. `memory` is about how many bytes of `parts` parts wait to be written.
    What is written is added to `tally`."""

    def __init__(self, *, parts: int, memory: int, tally: Tally | None = None) -> None:
        self.tally = tally or Tally()
        self._file = tempfile.TemporaryFile(prefix="pyrite-spill-", buffering=0)  # noqa: SIM115
        self._pieces = Pieces(full_bytes=max(LEAST_BYTES, memory // parts))
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._end = 0
        self.rows: dict[int, int] = {}
        """How many rows each part has. A part without rows is not there."""

    def add(self, part: int, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.rows[part] = self.rows.get(part, 0) + batch.num_rows
            full = self._pieces.add(part, batch)
            if full is not None:
                self._write(part, full)

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part. It can be read several times."""
        for rest, batch in self._pieces.rest():
            self._write(rest, batch)
        for start, size in self._places.get(part, ()):
            yield from unpacked(os.pread(self._file.fileno(), size, start))

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()

    def _write(self, part: int, batch: pa.RecordBatch) -> None:
        data = packed_buffer([batch])
        left = memoryview(data)
        while left:  # a disk that is almost full takes a part
            left = left[self._file.write(left) :]
        self._places.setdefault(part, []).append((self._end, data.size))
        self._end += data.size
        self.tally.written += data.size
