"""Packets of batches: they are Arrow IPC, of 1 to 8 MB, and hold only the rows that travel."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from pyrite.dag import EdgeSettings
from pyrite.engine.plan import EdgePlan
from pyrite.exchange.packing import items_of, packets_of_batches
from pyrite.spark.packets import PacketReader, PacketWriter, Row
from tests.columns.dags import numbered

EDGE = EdgePlan(0, "a", 0, "b", 0, EdgeSettings(), True)
MB = 1 << 20


def rows_of(writer: PacketWriter) -> list[Row]:
    reader = PacketReader(writer.rest(), {0: 0}, PacketWriter(0))
    rows = []
    while (row := reader.head()) is not None:
        rows.append(row)
        reader._rows.popleft()
    return rows


def sent(*chunks: list[Any]) -> list[Row]:
    writer = PacketWriter(0)
    outlet = writer.outlet(EDGE, 0, (0,), None)
    for chunk in chunks:
        assert outlet.offer(chunk) == len(chunk)
    return rows_of(writer)


def wide(size: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([0] * (size // 8), pa.int64())})


def test_a_slice_travels_without_the_rest_of_its_batch() -> None:
    (row,) = sent([pa.record_batch({"n": range(1_000_000)}).slice(7, 10)])
    assert len(row.items) < 2_000
    assert items_of(row.items)[0]["n"].to_pylist() == list(range(7, 17))


def test_small_batches_share_a_packet() -> None:
    batches = [numbered(n, 10) for n in range(100)]
    (row,) = sent(*([batch] for batch in batches))
    assert items_of(row.items) == batches


def test_packets_have_between_1_and_8_mb() -> None:
    rows = sent([wide(MB // 4) for _ in range(100)], *([wide(3 * MB)] for _ in range(5)))
    assert all(MB <= len(row.items) <= 8 * MB + 10_000 for row in rows)


def test_a_larger_batch_stays_whole() -> None:
    (row,) = sent([wide(20 * MB)])
    assert items_of(row.items) == [wide(20 * MB)]


def test_batches_and_other_items_stay_in_order() -> None:
    chunks = [[1, 2], [numbered(0, 2)], [{"n": 3}], [numbered(4, 1), 5]]
    rows = sent(*chunks)
    assert [item for row in rows for item in items_of(row.items)] == [i for c in chunks for i in c]


@pytest.mark.parametrize("offset", range(8))
def test_batches_are_read_from_any_address(offset: int) -> None:
    (packet,) = packets_of_batches([numbered(0, 5)])
    (batch,) = items_of(memoryview(bytes(offset) + bytes(packet))[offset:])
    assert batch == numbered(0, 5)
    for column in batch.columns:
        assert all(buffer is None or buffer.address % 8 == 0 for buffer in column.buffers())


def test_many_outlets_hold_few_bytes() -> None:
    writer = PacketWriter(0)
    outlets = [writer.outlet(EDGE, 0, (0,), None) for _ in range(100)]
    for outlet in outlets:
        outlet.offer([wide(MB // 2)])
    assert sum(batch.nbytes for outlet in outlets for batch in outlet._batches) <= 8 * MB


def test_no_packet_has_a_pickled_batch() -> None:
    row, *_ = sent([("key", pa.record_batch({"n": range(1_000_000)}).slice(7, 10))])
    assert len(row.items) < 2_000
    assert pickle.loads(row.items)[0][1]["n"].to_pylist() == list(range(7, 17))
