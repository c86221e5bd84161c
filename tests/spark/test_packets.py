"""Packets without Spark: each item comes out with the same type, at the partition of its key."""

from __future__ import annotations

import enum
import pickle
from collections import defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.dag import EdgeSettings, Pattern
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.exchange.packing import items_of, joined
from pyrite.partitioning import partition_function, partition_id
from pyrite.spark import packets
from pyrite.spark.packets import PacketReader, PacketWriter
from pyrite.spark.partition_packets import PartitionPackets

Pair = namedtuple("Pair", "key value")
PARTITIONS = 7


class Level(enum.IntEnum):
    LOW = 1


def edge_by(key: Callable[[Any], Any] | None, partitioner: Any = None) -> EdgePlan:
    return EdgePlan(
        0,
        "a",
        0,
        "b",
        0,
        EdgeSettings(
            pattern=Pattern.PARTITIONED, key=key, partitioner=partitioner, distributed=True
        ),
        True,
    )


def sent(items: list[Any], edge: EdgePlan, chunk: int = 3) -> dict[int, list[Any]]:
    """Sends items in chunks. Returns the items that arrive, by partition."""
    writer = PacketWriter(0)
    partition = partition_function(
        PARTITIONS, partitioner=edge.settings.partitioner, edge=edge.name
    )
    route = PartitionPackets(writer, edge, 0, partition, [0] * PARTITIONS)
    for start in range(0, len(items), chunk):
        route.drain(items[start : start + chunk])
    route.finish()
    reader = PacketReader(writer.rest(), {0: 0}, PacketWriter(0))
    arrived: dict[int, list[Any]] = defaultdict(list)
    while reader.head() is not None:
        number, packet = reader.take()
        arrived[number] += packet
    return dict(arrived)


scalars = st.one_of(
    st.text(st.characters()),
    st.integers(),
    st.booleans(),
    st.binary(max_size=4),
    st.just(Level.LOW),
)
pairs = st.tuples(scalars, scalars) | st.builds(Pair, scalars, scalars)
others = pairs | st.lists(scalars, min_size=2, max_size=2) | st.tuples(scalars, scalars, scalars)


def kinds(item: Any) -> Any:
    return (type(item), [type(part) for part in item])


@pytest.mark.parametrize(
    "key",
    [lambda kv: kv[0], lambda kv: kv[1], lambda kv: (kv[1], kv[0]), None],
    ids=["0", "1", "both", "all"],
)
@given(items=st.lists(pairs) | st.lists(others))
def test_items_arrive_in_order_at_the_partition_of_their_key_as_what_they_were(
    key: Any, items: list[Any]
) -> None:
    expected: dict[int, list[Any]] = defaultdict(list)
    for item in items:
        expected[partition_id(item if key is None else key(item), PARTITIONS)].append(item)
    arrived = sent(list(items), edge_by(key))
    assert arrived == expected
    for number, packet in arrived.items():
        assert [kinds(item) for item in packet] == [kinds(item) for item in expected[number]]


def test_half_a_surrogate_pair_is_a_key_like_any_other() -> None:
    key = "\ud800"
    assert list(sent([(key, 1), key + "x"], edge_by(lambda item: item[0]))) == [
        partition_id(key, PARTITIONS)
    ]


def test_a_partitioner_of_the_users_decides_for_strings_too() -> None:
    assert sent([("a", 1), ("b", 2)], edge_by(lambda kv: kv[0], lambda key, count: 5)) == {
        5: [("a", 1), ("b", 2)]
    }


@pytest.mark.parametrize("bad", [(None, 1), "no pair", 5])
def test_a_key_that_cannot_be_had_names_its_item(bad: Any) -> None:
    with pytest.raises(RoutingFailed) as raised:
        sent([("a", 1), bad, ("b", 2)], edge_by(lambda kv: None if kv == "no pair" else kv[0]))
    assert raised.value.item == bad


def test_half_of_a_pair_that_cannot_be_pickled_names_the_pair() -> None:
    unpicklable = (1, (n for n in [1]))
    with pytest.raises(RoutingFailed) as raised:
        sent([(0, 1), unpicklable], edge_by(lambda kv: 1))
    assert raised.value.item == unpicklable


@given(st.lists(st.lists(st.integers() | st.tuples(st.text(), st.integers()))))
def test_a_packet_of_several_pickles_has_the_items_of_all_in_order(parts: list[list[Any]]) -> None:
    chunks = [pickle.dumps(part, 5) for part in [*parts, ["last"]]]
    assert items_of(joined(chunks)) == [item for part in parts for item in part] + ["last"]


def test_many_partitions_make_packets_of_many_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "ITEMS_HELD", 64)
    writer = PacketWriter(0)
    writer.items_held = 64
    edge = edge_by(lambda item: item)
    route = PartitionPackets(writer, edge, 0, partition_function(50, edge="e"), [0] * 50)
    items = list(range(10_000))
    for start in range(0, len(items), 100):
        route.drain(items[start : start + 100])
    route.finish()
    reader = PacketReader(writer.rest(), {0: 0}, PacketWriter(0))
    arrived = []
    while reader.head() is not None:
        arrived.append(reader.take()[1])
    assert len(arrived) == 50  # one packet per partition, though few items are held at a time
    assert sorted(item for packet in arrived for item in packet) == items


def test_pickled_items_leave_as_packets_when_they_take_too_much_memory() -> None:
    writer = PacketWriter(0, open_bytes=1_000)
    edge = edge_by(lambda item: item)
    route = PartitionPackets(writer, edge, 0, partition_function(3, edge="e"), [0] * 3)
    route.drain([f"{n:0100d}" for n in range(writer.items_held)])
    assert len(next(writer.rest())) == 3  # before finish()


def test_rows_leave_in_batches_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "BATCH_BYTES", 1_000)
    writer = PacketWriter(0)
    broadcast = EdgePlan(0, "a", 0, "b", 0, EdgeSettings(pattern=Pattern.BROADCAST), True)
    outlet = writer.outlet(broadcast, 0, range(50), None)
    outlet.offer(["x" * 300])
    batches = list(writer.rest())
    assert sum(batch.num_rows for batch in batches) == 50
    assert max(batch.num_rows for batch in batches) <= 4


def test_a_writer_that_is_full_takes_no_more_until_spark_has_taken_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packets, "BATCH_BYTES", 100)
    writer = PacketWriter(0)
    outlet = writer.outlet(edge_by(None), 0, [0], 0)
    route = PartitionPackets(writer, edge_by(None), 0, partition_function(3, edge="e"), [0] * 3)
    writer.add(0, 0, 0, 0, b"x" * 1_000)
    assert outlet.room() == 0
    assert route.pending
    list(writer.batches())
    assert outlet.room() > 0
    assert not route.pending
