"""A join whose right side does not fit into memory. Rows of both sides go to disk, in parts by the
hash of their key, and each part is joined by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pyrite.columns.hashing.partitions import hashes_of
from pyrite.columns.joining.spec import JoinSpec
from pyrite.columns.packing.splitting import split
from pyrite.columns.spill_file import SpillFile, Tally

PARTS: Final = 32


class Spilled:
    """Both sides of a join on disk. `level` says which digits of the hash choose the part: a part
    that is too large is divided again by the next ones."""

    def __init__(self, spec: JoinSpec, *, budget: int, level: int, tally: Tally) -> None:
        self._spec = spec
        self._divisor = np.uint32(PARTS**level)
        self._right = SpillFile(parts=PARTS, memory=budget // 4, tally=tally)
        self._left = SpillFile(parts=PARTS, memory=budget // 4, tally=tally)
        self._hash: dict[int, int | None] = {}
        """By part the only hash of its right rows; None if there are several."""

    def add_right(self, batch: pa.RecordBatch) -> None:
        hashes = hashes_of(batch, self._spec.right_on)
        targets = self._targets(hashes)
        for part, piece in enumerate(split(batch, targets, PARTS)):
            if piece is not None:
                self._right.add(part, piece)
        for part in np.unique(targets).tolist():
            ends = hashes[targets == part]
            only = int(ends[0]) if (ends == ends[0]).all() else None
            self._hash[part] = only if self._hash.get(part, only) == only else None

    def add_left(self, batch: pa.RecordBatch) -> None:
        """Adds left rows. Those of parts without right rows are dropped if only matches count."""
        targets = self._targets(hashes_of(batch, self._spec.left_on))
        keeps_all = self._spec.how in ("left", "full", "anti")
        for part, piece in enumerate(split(batch, targets, PARTS)):
            if piece is not None and (keeps_all or part in self._right.rows):
                self._left.add(part, piece)

    def parts(self) -> list[int]:
        return sorted(self._left.rows.keys() | self._right.rows.keys())

    def can_be_divided(self, part: int) -> bool:
        """Whether the right rows of a part have several hashes."""
        return self._hash.get(part) is None

    def right(self, part: int) -> Iterator[pa.RecordBatch]:
        return self._right.read(part)

    def left(self, part: int) -> Iterator[pa.RecordBatch]:
        return self._left.read(part)

    def close(self) -> None:
        self._right.close()
        self._left.close()

    def _targets(self, hashes: np.ndarray) -> np.ndarray:
        return hashes // self._divisor % np.uint32(PARTS)
