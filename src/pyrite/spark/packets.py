"""Packets: the rows that cross an exchange. Many items of one edge for one member, pickled as one
list; if all are pairs, as two lists, of their halves.

Besides items, rows carry what is meant for the driver: what was put into named collections, and
each task's report. These are handed on from stage to stage like packets for a later stage, and so
count only for the attempt of a task that Spark takes.
"""

from __future__ import annotations

import pickle
import threading
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import cloudpickle
import pyarrow as pa

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed

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
"""Instead of an edge: a task's report; something to put into a named collection; nothing, but for
the member that it is for."""
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
"""How many items a task may hold back to fill its packets: so few that they are still in the CPU's
cache when they are pickled."""
ITEMS_PER_CHUNK = 32
"""How many items of a partition are pickled together, at least: with many partitions more items are
held, up to MOST_TIMES_HELD times as many."""
MOST_TIMES_HELD = 16
OPEN_BYTES_HELD = 64 << 20
"""How many bytes the open packets of a task may have."""
FULL_PACKET_BYTES = 1 << 16
"""From this size on a packet is worth its fixed cost as a row of Spark's."""
PACKET_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
MOST_BATCHES_WAITING = 4
"""A processor with a thread of its own goes on while Spark takes a batch; but not without end."""


class Row(NamedTuple):
    member: int
    rank: int
    edge: int
    partition: int
    items: bytes | memoryview
    sender: int
    sequence: int
    """The member that made the row, and how many it had made before: together, a place in an order
    that does not depend on arrival."""


class PacketWriter:
    """Gathers items to packets, and packets to Arrow batches. Processors with threads of their own
    may use it, too."""

    def __init__(self, member: int, open_bytes: int = OPEN_BYTES_HELD) -> None:
        self.lock = threading.RLock()
        self._open_bytes = open_bytes
        self.routes = 1
        """How many share the memory for open packets: the outlets together, and each route."""
        self._member = member
        self._outlets: list[PacketOutlet] = []
        self._held = 0
        self._pickled = 0
        """How many items the outlets hold, and how many bytes their open packets have."""
        self._rows: list[Row] = []
        self._bytes = 0
        self._made = 0
        self._bytes_per_item = 1 << 10
        self.items_per_packet = 64
        self.items_held = 4096
        """Both adapt to the size of the items: a packet has about a megabyte, and what is held fits
        into a batch."""

    def pack(self, items: list[Any], edge: EdgePlan) -> bytes:
        """Pickles the items of one packet."""
        packed = pickled(items, items, edge)
        self._learn(len(packed), len(items))
        return packed

    def pack_pairs(self, firsts: list[Any], seconds: list[Any], edge: EdgePlan) -> bytes:
        """Pickles the items of one packet, all of them pairs, as two lists."""
        packed = pickled((firsts, seconds), zip(firsts, seconds), edge)
        self._learn(len(packed), len(firsts))
        return packed

    def items_held_for(self, partitions: int) -> int:
        """How many items a route to that many partitions may hold as objects."""
        wanted = min(ITEMS_PER_CHUNK * partitions, MOST_TIMES_HELD * ITEMS_HELD)
        room = self.open_bytes_held() // 2 // self._bytes_per_item
        return max(self.items_held, min(wanted, room))

    def open_bytes_held(self) -> int:
        """How many bytes the open packets of a route, or of all outlets, may have."""
        return self._open_bytes // self.routes

    def _learn(self, size: int, count: int) -> None:
        self._bytes_per_item = bytes_per_item = max(1, size // count)
        self.items_per_packet = max(1, min(ITEMS_PER_PACKET, PACKET_BYTES // bytes_per_item))
        self.items_held = max(1, min(ITEMS_HELD, BATCH_BYTES // bytes_per_item))

    def outlet(
        self, edge: EdgePlan, rank: int, members: Sequence[int], partition: int | None
    ) -> PacketOutlet:
        """Where items of one edge go, for one partition; each of the members gets them all."""
        outlet = PacketOutlet(
            self, edge, rank, members, NO_PARTITION if partition is None else partition
        )
        self._outlets.append(outlet)
        return outlet

    def tell_driver(self, kind: int, message: Any) -> None:
        """Sends a report, or something to collect."""
        try:
            packed = pickle.dumps(message, 5)
        except Exception:
            packed = cloudpickle.dumps(message, 5)
        self.add(self._member, -1, kind, NO_PARTITION, packed)

    def add(self, member: int, rank: int, edge: int, partition: int, items: bytes) -> None:
        """Adds a row that is made here."""
        with self.lock:
            self.hand_on(Row(member, rank, edge, partition, items, self._member, self._made))
            self._made += 1

    def hand_on(self, row: Row) -> None:
        """Adds a row as it came."""
        with self.lock:
            self._rows.append(row)
            self._bytes += len(row.items)

    def note_held(self, count: int) -> None:
        """Notes that the outlets hold more items, or fewer."""
        self._held += count
        if self._held >= self.items_held:
            for outlet in self._outlets:
                outlet.pickle_items()
            self._held = 0
            if self._pickled >= self.open_bytes_held():
                self._close_packets()

    def note_pickled(self, size: int) -> None:
        """Notes that the outlets' open packets have more bytes, or fewer."""
        self._pickled += size

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches that are full."""
        if self._bytes >= BATCH_BYTES:
            yield from self._batches()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is left at the end."""
        self._close_packets()
        yield from self._batches()

    @property
    def is_full(self) -> bool:
        """Whether so many rows wait for Spark to take them that no more should be made."""
        return self._bytes >= MOST_BATCHES_WAITING * BATCH_BYTES

    def _close_packets(self) -> None:
        for outlet in self._outlets:
            outlet.pickle_items()
            outlet.close_packet()
        self._held = 0

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


class OpenPacket:
    """A packet that is not full yet: pickles of lists of items."""

    __slots__ = ("_chunks", "size")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self.size = 0

    def add(self, chunk: bytes) -> int:
        """Adds a pickle. Returns how many bytes the packet has now."""
        self._chunks.append(chunk)
        self.size += len(chunk)
        return self.size

    def closed(self) -> bytes:
        return joined(self._chunks)


class PacketOutlet:
    """An outlet of the engine that fills packets. It always has room: what is held is bounded by
    the writer."""

    __slots__ = ("_edge", "_items", "_members", "_open", "_partition", "_rank", "_writer")

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
        """Who gets each packet. Nobody, if another outlet sends the same to all."""
        self._partition = partition
        self._items: list[Any] = []
        self._open = OpenPacket()

    def room(self) -> int:
        return 0 if self._writer.is_full else ITEMS_PER_PACKET

    def offer(self, items: list[Any]) -> int:
        count = len(items)
        if not self._members:
            return count
        with self._writer.lock:
            self._items += items
            if len(self._items) >= self._writer.items_per_packet:
                self._writer.note_held(count - len(self._items))
                self.pickle_items()
            else:
                self._writer.note_held(count)
        return count

    def finish(self) -> None:
        pass

    def pickle_items(self) -> None:
        """Pickles the items that are held. The packet is closed if it is large enough."""
        if self._items:
            packed = self._writer.pack(self._items, self._edge)
            self._items = []
            self._writer.note_pickled(len(packed))
            if self._open.add(packed) >= FULL_PACKET_BYTES:
                self.close_packet()

    def close_packet(self) -> None:
        if self._open.size:
            packet, self._open = self._open, OpenPacket()
            self._writer.note_pickled(-packet.size)
            rows = packet.closed()
            for member in self._members:
                self._writer.add(member, self._rank, self._edge.id, self._partition, rows)


class PacketReader:
    """Reads the rows of a task's input one after another. Rows for later stages, and for the
    driver, are handed on as they come."""

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
        """The next row for this stage, which stays; None at the end."""
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
        """The partition and the items of the row that `head` showed."""
        row = self._rows.popleft()
        return row.partition, items_of(row.items)

    def has_ended(self, edge: int) -> bool:
        """Whether no row of an edge will come any more. With ranks, that is so as soon as a row of
        a later rank is next."""
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


def joined(chunks: Sequence[bytes]) -> bytes:
    """Several pickles of lists of items as one packet."""
    if len(chunks) == 1:
        return chunks[0]
    lengths = array("Q", map(len, chunks))
    return b"".join([_SEVERAL, len(chunks).to_bytes(4, "little"), lengths.tobytes(), *chunks])


def items_of(packet: bytes | memoryview) -> list[Any]:
    """The items of a packet.

    >>> items_of(joined([pickle.dumps([1, 2]), pickle.dumps((["a"], ["b"]))]))
    [1, 2, ('a', 'b')]
    """
    packet = memoryview(packet)
    if packet[0] != _SEVERAL[0]:
        return _unpickled(packet)
    count = int.from_bytes(packet[1:5], "little")
    start = 5 + 8 * count
    items: list[Any] = []
    for length in array("Q", packet[5:start].tobytes()):
        items += _unpickled(packet[start : start + length])
        start += length
    return items


_SEVERAL: Final = b"+"
"""How a packet of several pickles begins; a pickle begins with another byte."""


def _unpickled(packet: memoryview) -> list[Any]:
    items = pickle.loads(packet)
    return list(zip(*items)) if type(items) is tuple else items


def pickled(packet: Any, items: Iterable[Any], edge: EdgePlan) -> bytes:
    """A packet of items as bytes. What the worker's own modules do not have, as a class of the
    user's script, is pickled with its code."""
    try:
        return pickle.dumps(packet, 5)
    except Exception:
        pass
    try:
        packed: bytes = cloudpickle.dumps(packet, 5)
        return packed
    except Exception as error:
        raise RoutingFailed(edge.name, _first_unpicklable(items), error) from error


def _first_unpicklable(items: Iterable[Any]) -> Any:
    for item in items:
        try:
            cloudpickle.dumps(item, 5)
        except Exception:
            return item
    return None


def driver_rows(table: pa.Table, kinds: Collection[int]) -> Iterator[tuple[int, Any]]:
    """What tasks told the driver, of some kinds, from the rows that the last stage gave."""
    edges = table.column("edge").to_pylist()
    items = table.column("items")
    for i, kind in enumerate(edges):
        if kind in kinds:
            yield kind, pickle.loads(items[i].as_buffer())
