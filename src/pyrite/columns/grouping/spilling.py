"""States in temporary files, as Arrow IPC, in parts by the hash of the key. Each part is grouped on
its own. If it is too large for memory, too, it is spilled again by other bits of the hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from pyrite.columns.hashing.partitions import hashes_of
from pyrite.columns.packing.splitting import split
from pyrite.columns.spill_file import SpillFile, Tally

_BITS: Final = 4
PARTS: Final = 1 << _BITS
LEVELS: Final = 32 // _BITS
"""How many times a state can be spilled: then the bits of the hash are used up."""


_WAITING: Final = 1 << 20
"""About how many bytes wait to be written, in all parts together."""


class Spill:
    def __init__(self, by: Sequence[str], level: int) -> None:
        self._by = by
        self._shift = _BITS * level
        self._file = SpillFile(parts=PARTS, memory=_WAITING)

    def count_in(self, tally: Tally) -> None:
        """From now on, what is written is added to `tally`."""
        self._file.tally = tally

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            parts = (hashes_of(batch, self._by) >> self._shift) & (PARTS - 1)
            for number, piece in enumerate(split(batch, parts, PARTS)):
                if piece is not None:
                    self._file.add(number, piece)

    def parts(self) -> Iterator[Iterator[pa.RecordBatch]]:
        """The batches of one part after the other. Batches of a key are in one part, in the order
        in which they were added."""
        for number in sorted(self._file.rows):
            yield self._file.read(number)

    def close(self) -> None:
        self._file.close()
