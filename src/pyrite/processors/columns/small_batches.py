"""Small batches are put together before a kernel gets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyrite.columns.packing.splitting import merged


class Small:
    """Each call of a kernel takes a fraction of a millisecond, however few rows there are."""

    LARGE = 64 << 10
    MANY = 512
    MOST_BYTES = 1 << 20
    """What waits is not counted in the memory of the step, so it is little."""

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, frame: Any) -> Iterator[Any]:
        """The frames that are ready, in their order."""
        size = frame.nbytes if isinstance(frame, pa.RecordBatch) else self.LARGE
        is_small = size < self.LARGE
        if not is_small or (self._held and self._held[0].schema != frame.schema):
            yield from self.rest()
        if not is_small:
            yield frame
            return
        self._held.append(frame)
        self._bytes += size
        if len(self._held) >= self.MANY or self._bytes >= self.MOST_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[Any]:
        held, self._held, self._bytes = self._held, [], 0
        if len(held) > 1:
            try:
                held = [merged(held)]
            except pa.ArrowException:  # such as dictionaries that are too large together
                pass
        yield from held
