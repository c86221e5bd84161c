"""Packets: the rows that cross an exchange.

A packet has many items of one edge for one member, pickled as one list. Pairs are pickled as two
lists, one of the first and one of the second halves. Batches of rows are not pickled, but written
as Arrow IPC.

Other rows are messages to the driver: the report of each task, and items for named maps and lists.
Later sections forward them like packets. So Spark drops the messages of a failed attempt of a task,
and the driver gets each message once.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pyrite.columns.packing.item_pickling import dumps
from pyrite.engine.plan import EdgePlan
from pyrite.exchange.packing import (
    OpenPacket,
    are_batches,
    items_of,
    packets_of_batches,
    pickled,
    pickled_pairs,
)
from pyrite.weights import bytes_of

SCHEMA: Final = (
    "member int, rank int, edge int, partition int, items binary, sender int, sequence int"
)
ARROW_SCHEMA: Final = pa.schema(
    [
        ("member", pa.int32()),
        ("rank", pa.int32()),
        ("edge", pa.int32()),
        ("partition", pa.int32()),
        ("items", pa.binary()),
        ("sender", pa.int32()),
        ("sequence", pa.int32()),
    ]
)

REPORT: Final = -1
COLLECTED: Final = -2
SEED: Final = -3
"""Values of the `edge` column in rows without packets: the report of a task; items for a named map
or list; an empty row that only tells a task its member."""
SEED_COLUMNS: Final = (
    "cast(id as int) member",
    "cast(-1 as int) rank",
    f"cast({SEED} as int) edge",
    "cast(-1 as int) partition",
    "cast('' as binary) items",
    "cast(-1 as int) sender",
    "cast(-1 as int) sequence",
)

NO_PARTITION: Final = -1
ITEMS_PER_PACKET = 8192
ITEMS_HELD = 1 << 15
"""How many items a task may hold before it pickles them. The limit is so low that they are still in
the CPU cache when they are pickled."""
ITEMS_PER_CHUNK = 32
"""The average number of items of a partition to pickle together. With many partitions a task holds
more items to reach it, up to MOST_TIMES_HELD times ITEMS_HELD."""
MOST_TIMES_HELD = 16
OPEN_BYTES_HELD = 64 << 20
"""The largest total size of the open packets of a task."""
FULL_PACKET_BYTES = 1 << 16
"""A packet of this size is closed. The fixed cost of a Spark row is small compared with it."""
PACKET_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
MOST_BATCHES_WAITING = 4
"""Processors that are not cooperative run on while Spark reads a batch. They stop when this many
batches wait."""


class Row(NamedTuple):
    member: int
    rank: int
    edge: int
    partition: int
    items: bytes | memoryview
    sender: int
    sequence: int
    """`sender` is the member that made the row, and `sequence` counts its rows. Sorting by both
    gives an order that does not depend on the order of arrival."""


class PacketWriter:
    """Collects items into packets, and packets into Arrow batches. It has a lock, because
    processors that are not cooperative use it from their own threads."""

    def __init__(self, member: int, open_bytes: int = OPEN_BYTES_HELD) -> None:
        self.lock = threading.RLock()
        self._open_bytes = open_bytes
        self.routes = 1
        """How many users share the memory for open packets: each PartitionPackets route is one, and
        all outlets together are one."""
        self._member = member
        self._outlets: list[PacketOutlet] = []
        self._held = 0
        self._pickled = 0
        """The number of items that the outlets hold, and the size of their open packets."""
        self._held_bytes = 0
        """The bytes of the batches that they hold."""
        self._rows: list[Row] = []
        self._bytes = 0
        self._made = 0
        self._bytes_per_item = 1 << 10
        self.items_per_packet = 64
        self.items_held = 256
        """Both adapt to the size of the items: a packet has at most about PACKET_BYTES, and the
        items held have at most about BATCH_BYTES."""

    def pack(self, items: list[Any], edge: EdgePlan) -> bytes:
        """Pickles the items of one packet."""
        packed = pickled(items, items, edge)
        self._learn(len(packed), len(items))
        return packed

    def pack_pairs(self, firsts: list[Any], seconds: list[Any], edge: EdgePlan) -> bytes:
        """Pickles the pairs of one packet as two lists."""
        packed = pickled_pairs((firsts, seconds), firsts, seconds, edge)
        self._learn(len(packed), len(firsts))
        return packed

    def items_held_for(self, partitions: int) -> int:
        """How many items a route to this number of partitions may hold before it pickles them."""
        wanted = min(ITEMS_PER_CHUNK * partitions, MOST_TIMES_HELD * ITEMS_HELD)
        room = self.open_bytes_held() // 2 // self._bytes_per_item
        return max(self.items_held, min(wanted, room))

    def open_bytes_held(self) -> int:
        """The largest total size of the open packets of one route, or of all outlets together."""
        return self._open_bytes // self.routes

    def _learn(self, size: int, count: int) -> None:
        self._bytes_per_item = bytes_per_item = max(1, size // count)
        self.items_per_packet = max(1, min(ITEMS_PER_PACKET, PACKET_BYTES // bytes_per_item))
        self.items_held = max(1, min(ITEMS_HELD, BATCH_BYTES // bytes_per_item))

    def outlet(
        self, edge: EdgePlan, rank: int, members: Sequence[int], partition: int | None
    ) -> PacketOutlet:
        """A new outlet for the items of one edge and partition. Each of the members gets all its
        items."""
        outlet = PacketOutlet(
            self, edge, rank, members, NO_PARTITION if partition is None else partition
        )
        self._outlets.append(outlet)
        return outlet

    def tell_driver(self, kind: int, message: Any) -> None:
        """Sends a message to the driver; `kind` is REPORT, COLLECTED, or ROWS plus an id."""
        packed = dumps(message, getattr(message, "contents", message))
        self.add(self._member, -1, kind, NO_PARTITION, packed)

    def add(
        self, member: int, rank: int, edge: int, partition: int, items: bytes | memoryview
    ) -> None:
        """Adds a new row."""
        with self.lock:
            self.hand_on(Row(member, rank, edge, partition, items, self._member, self._made))
            self._made += 1

    def hand_on(self, row: Row) -> None:
        """Forwards a row from an earlier section unchanged."""
        with self.lock:
            self._rows.append(row)
            self._bytes += len(row.items)

    def note_held(self, count: int) -> None:
        """Adds to the number of items that the outlets hold. Pickles them all if it is too
        large."""
        self._held += count
        if self._held >= self.items_held:
            self._pack_all()
            if self._pickled >= self.open_bytes_held():
                self._close_packets()

    def note_batches(self, size: int) -> None:
        """Adds to the bytes of the batches that the outlets hold. Packs them all if it is too
        large."""
        self._held_bytes += size
        if self._held_bytes >= BATCH_BYTES:
            self._pack_all()

    def _pack_all(self) -> None:
        for outlet in self._outlets:
            outlet.pack_items()
        self._held = self._held_bytes = 0

    def note_pickled(self, size: int) -> None:
        """Adds to the total size of the outlets' open packets."""
        self._pickled += size

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields batches if enough rows have been collected."""
        if self._bytes >= BATCH_BYTES:
            yield from self._batches()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Closes all open packets, and yields the last batch."""
        self._close_packets()
        yield from self._batches()

    @property
    def is_full(self) -> bool:
        """Whether so many rows wait to be read by Spark that no more should be made."""
        return self._bytes >= MOST_BATCHES_WAITING * BATCH_BYTES

    def _close_packets(self) -> None:
        self._pack_all()
        for outlet in self._outlets:
            outlet.close_packet()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """All rows there are, in batches of about BATCH_BYTES: Arrow holds no more than 2 GB of
        bytes in a column, and a packet for all members is as many rows."""
        with self.lock:
            rows, self._rows, self._bytes = self._rows, [], 0
        start, size = 0, 0
        for at, row in enumerate(rows, 1):
            size += len(row.items)
            if size >= BATCH_BYTES or at == len(rows):
                yield _batch_of(rows[start:at])
                start, size = at, 0


def _batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows), ARROW_SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


class PacketOutlet:
    """An outlet of the engine that fills packets. It always has room: the writer limits how many
    items are held."""

    __slots__ = (
        "_batches",
        "_batches_size",
        "_edge",
        "_items",
        "_members",
        "_open",
        "_partition",
        "_rank",
        "_writer",
    )

    def __init__(
        self,
        writer: PacketWriter,
        edge: EdgePlan,
        rank: int,
        members: Sequence[int],
        partition: int,
    ) -> None:
        self._writer = writer
        self._edge = edge
        self._rank = rank
        self._members = members
        """The members that get each packet. Empty if another outlet sends the items to all."""
        self._partition = partition
        self._items: list[Any] = []
        self._batches: list[Any] = []
        """Batches of rows, which came after the items."""
        self._batches_size = 0
        self._open = OpenPacket()

    def room(self) -> int:
        return 0 if self._writer.is_full else ITEMS_PER_PACKET

    def offer(self, items: list[Any]) -> int:
        count = len(items)
        if not self._members:
            return count
        with self._writer.lock:
            if are_batches(items):
                self._offer_batches(items)
                return count
            if self._batches:
                self.pack_items()
            self._items += items
            if len(self._items) >= self._writer.items_per_packet:
                self._writer.note_held(count - len(self._items))
                self.pack_items()
            else:
                self._writer.note_held(count)
        return count

    def finish(self) -> None:
        pass

    def _offer_batches(self, batches: list[Any]) -> None:
        size = bytes_of(batches)
        self._batches += batches
        self._batches_size += size
        if self._batches_size >= PACKET_BYTES:
            self._writer.note_batches(size - self._batches_size)
            self.pack_items()
        else:
            self._writer.note_batches(size)

    def pack_items(self) -> None:
        """Packs what is held, and closes the packet if it is large enough."""
        if self._items:
            packed = self._writer.pack(self._items, self._edge)
            self._items = []
            self._writer.note_pickled(len(packed))
            if self._open.add(packed) >= FULL_PACKET_BYTES:
                self.close_packet()
        if self._batches:
            self.close_packet()
            batches, self._batches, self._batches_size = self._batches, [], 0
            for packet in packets_of_batches(batches):
                self._add(packet)

    def close_packet(self) -> None:
        if self._open.size:
            packet, self._open = self._open, OpenPacket()
            self._writer.note_pickled(-packet.size)
            self._add(packet.closed())

    def _add(self, packet: bytes | memoryview) -> None:
        for member in self._members:
            self._writer.add(member, self._rank, self._edge.id, self._partition, packet)


class PacketReader:
    """Reads the rows of a task's input in order. It forwards rows for later sections and for the
    driver."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], ranks: Mapping[int, int], handed_on: PacketWriter
    ) -> None:
        self._batches = batches
        self._ranks = ranks
        self._handed_on = handed_on
        self._rows: deque[Row] = deque()
        self._ended = False
        self.in_order = len(set(ranks.values())) > 1

    def head(self) -> Row | None:
        """The next row for this section, without removing it; None at the end."""
        while True:
            if self._rows:
                row = self._rows[0]
                if row.edge in self._ranks:
                    return row
                self._rows.popleft()
                if row.edge != SEED:
                    self._handed_on.hand_on(row)
            elif self._ended:
                return None
            else:
                self._read_batch()

    def take(self) -> tuple[int, list[Any]]:
        """Removes the row that `head` returned. Returns its partition and its items."""
        row = self._rows.popleft()
        return row.partition, items_of(row.items)

    def has_ended(self, edge: int) -> bool:
        """Whether all rows of an edge have been read. If rows are sorted by rank, this is true as
        soon as the next row has a higher rank."""
        row = self.head()
        return row is None or (self.in_order and row.rank > self._ranks[edge])

    def _read_batch(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            self._ended = True
            return
        members, ranks, edges, partitions = (batch.column(i).to_pylist() for i in range(4))
        items = [memoryview(each.as_buffer()) for each in batch.column(4)]
        senders, sequences = (batch.column(i).to_pylist() for i in (5, 6))
        self._rows.extend(map(Row, members, ranks, edges, partitions, items, senders, sequences))


def driver_rows(table: pa.Table, kinds: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Reads the messages of the given kinds to the driver from the output of the last section."""
    edges = table.column("edge").to_pylist()
    items = table.column("items")
    for i, kind in enumerate(edges):
        if kind in kinds:
            yield kind, pickle.loads(items[i].as_buffer())
