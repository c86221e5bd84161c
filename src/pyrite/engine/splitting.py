"""The route of an edge that is partitioned by columns: it splits batches of rows, and sends each
row to the outlet of its partition.

Small pieces for the same outlet are held back and put together, in their order, until they are
large, or until the engine lets them go.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from pyrite.engine.ends import Outlet
from pyrite.engine.routing import ByOutlet, RoutingFailed
from pyrite.partitioning import RowKey
from pyrite.weights import count_of, is_batch

if TYPE_CHECKING:
    from pyrite.columns.packing.splitting import Pieces

MOST_HELD: Final = 8 << 20
"""The most bytes that a route holds back for all its outlets together."""


class PartitionedRows(ByOutlet):
    """Sends each row of a batch to the outlet of its partition. An item that is no batch must be a
    row itself, as a dict, and goes after the rows before it."""

    __slots__ = (
        "_held",
        "_held_since",
        "_key",
        "_outlet_of_partition",
        "_pieces",
        "_places",
        "_tells_columns",
        "_told",
    )
    puts_together = True

    def __init__(
        self,
        outlets: Sequence[Outlet],
        *,
        outlet_of_partition: Sequence[int],
        key: RowKey,
        tells_columns: bool = False,
    ) -> None:
        super().__init__(outlets)
        self._outlet_of_partition = outlet_of_partition
        self._key = key
        self._places: Any = None
        self._pieces: Pieces | None = None
        """Made with the first batch: without batches, their libraries are not needed."""
        self._tells_columns = tells_columns
        self._told: Any = None
        """The schema that all outlets know."""
        self._held = 0
        """The bytes of the pieces that are held back."""
        self._held_since: float | None = None

    @property
    def held_since(self) -> float | None:
        return self._held_since

    def let_go(self) -> None:
        if self._pieces is not None and self._held_since is not None:
            for place, piece in self._pieces.rest():
                self._send(place, piece)
        self._held, self._held_since = 0, None

    def _take(self, bucket: list[Any]) -> None:
        self.moved += count_of(bucket)
        items = bucket[::-1]
        bucket.clear()
        while items:
            item = items.pop()  # so that a batch is not kept longer than its pieces
            try:
                self._take_one(item)
            except Exception as error:
                raise RoutingFailed(self._key.edge, item, error) from error

    def _take_one(self, item: Any) -> None:
        self._key.check(item)
        if not is_batch(item):
            self.let_go()
            partition = self._key.partition(item, len(self._outlet_of_partition))
            self._send(self._outlet_of_partition[partition], item)
        elif len(self.outlets) == 1:
            self._send(0, item)
        else:
            self._split(item)

    def _split(self, batch: Any) -> None:
        from pyrite.columns.frames import as_batch
        from pyrite.columns.packing.splitting import Pieces, split

        batch = as_batch(batch)
        if self._pieces is None:
            self._pieces = Pieces()
        pieces = split(batch, self._places_of(batch), len(self.outlets))
        for place, piece in enumerate(pieces):
            if piece is not None:
                self._put_together(self._pieces, place, piece)
        if self._tells_columns and self._told != batch.schema:
            self._tell(batch.schema, pieces)
        if self._held >= MOST_HELD:
            self.let_go()

    def _tell(self, schema: Any, pieces: Sequence[Any]) -> None:
        """Sends an empty batch to each outlet that gets no row: a join needs the columns of a side
        of which it gets no rows, too."""
        from pyrite.columns.frames import empty_batch

        self._told = schema
        for place, piece in enumerate(pieces):
            if piece is None:
                self._send(place, empty_batch(schema))

    def _places_of(self, batch: Any) -> Any:
        """By row, the index of its outlet."""
        import numpy as np

        from pyrite.columns.hashing.partitions import partitions_of

        if self._places is None:
            self._places = np.array(self._outlet_of_partition, np.int32)
        return self._places[partitions_of(batch, self._key.columns, len(self._places))]

    def _put_together(self, pieces: Pieces, place: int, piece: Any) -> None:
        from pyrite.columns.frames import batches_of

        full = pieces.add(place, piece)
        self._held += piece.nbytes
        if full is not None:
            self._held = max(0, self._held - full.nbytes)
            for part in batches_of(full):
                self._send(place, part)
        elif self._held_since is None:
            self._held_since = perf_counter()

    def _send(self, place: int, item: Any) -> None:
        self._wait(place, [item])
