"""Batches of rows weigh their bytes: queues, outboxes and sources hold few of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, AbstractProcessor, Instance, between
from pyrite import processors as p
from pyrite.boxes import Outbox
from pyrite.engine.queues import UNBOUNDED, SpscQueue
from pyrite.engine.routing import Broadcast, ToOne, Unicast

MB = 1 << 20
LIMIT = 32 * MB


def sized(size: int) -> pa.RecordBatch:
    return pa.record_batch({"n": np.zeros(size // 8)})


def held(queue: SpscQueue) -> int:
    return sum(each.nbytes for chunk in queue._chunks for each in chunk if each)  # type: ignore[union-attr]


def test_a_queue_holds_at_most_32_mb_of_batches() -> None:
    queue = SpscQueue(1024)
    assert queue.offer([sized(10 * MB) for _ in range(9)]) == 3
    assert queue.offer([sized(10 * MB)]) == 0
    assert held(queue) <= LIMIT


def test_a_batch_that_is_larger_goes_through_alone() -> None:
    queue = SpscQueue(1024)
    assert queue.offer([sized(40 * MB), sized(MB)]) == 1
    assert queue.room() == 0
    assert queue.poll(10) == [sized(40 * MB)]
    assert queue.offer([sized(MB)]) == 1


def test_a_buffered_edge_has_no_limit() -> None:
    assert SpscQueue(UNBOUNDED).offer([sized(10 * MB)] * 9) == 9


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=30))
def test_a_queue_counts_what_it_has(steps: list[tuple[int, int]]) -> None:
    queue, rows = SpscQueue(1024), 0
    for size, limit in steps:
        queue.offer([sized(8 * size), sized(8 * size), "x"])
        rows += 2 * size + 1
        taken = queue.poll(limit)
        assert isinstance(taken, list)
        rows -= sum(each.num_rows if isinstance(each, pa.RecordBatch) else 1 for each in taken)
        assert queue.rows == rows
        assert queue._added_bytes - queue._taken_bytes == held_bytes(queue)


def held_bytes(queue: SpscQueue) -> int:
    return sum(
        each.nbytes
        for chunk in queue._chunks
        for each in chunk  # type: ignore[union-attr]
        if isinstance(each, pa.RecordBatch)
    )


@pytest.mark.parametrize("kind", [ToOne, Unicast, Broadcast])
def test_routes_keep_what_queues_have_no_room_for(kind: Any) -> None:
    queues = [SpscQueue(1024) for _ in range(1 if kind is ToOne else 2)]
    route = kind(queues)
    bucket = [pa.record_batch({"n": np.full(2 * MB // 8, n)}) for n in range(40)]
    arrived: list[list[int]] = [[] for _ in queues]
    route.drain(bucket)
    while route.pending or any(map(len, queues)):
        for queue, mine in zip(queues, arrived):
            while isinstance(chunk := queue.poll(3), list):
                mine += [each["n"][0].as_py() for each in chunk]
        route.drain([])
    if kind is Unicast:
        assert sorted(arrived[0] + arrived[1]) == list(range(40))
    else:
        assert all(mine == list(range(40)) for mine in arrived)
    assert route.moved == 40 * 2 * MB // 8


def test_an_outbox_is_full_with_32_mb_of_batches() -> None:
    outbox = Outbox([2048, 2048])
    for _ in range(8):
        outbox.add(sized(4 * MB), 1)
    assert not outbox.is_full(0)
    assert outbox.is_full(1)
    assert outbox.is_full()
    outbox.buckets[1].clear()
    assert outbox.room() == 2048


class Watched(AbstractProcessor):
    """Emits batches of 1 MB, and counts them."""

    made = 0

    def __init__(self) -> None:
        Watched.made = 0
        self.rest = self.batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        for _ in range(300):
            Watched.made += 1
            yield sized(MB)


class AtEnd(Watched):
    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


class ForItems(Watched):
    def try_process_0(self, item: int) -> None:
        Watched.made += 1
        self.emit(sized(MB))


class ForOneItem(Watched):
    def try_process_0(self, item: int) -> bool:
        return item > 0 or self.emit_cooperatively(self.rest)


class Stalls(AbstractProcessor):
    """Takes one batch, and no more before it may."""

    cooperative = False
    may_go_on = threading.Event()
    has_one = threading.Event()

    def try_process_0(self, batch: pa.RecordBatch) -> None:
        self.has_one.set()
        self.may_go_on.wait(20)


def made_for_a_stalled_receiver(pyr: Instance, source: Any, shape: str, maker: Any) -> int:
    """How many batches of 1 MB are made while their receiver takes only one."""
    Stalls.may_go_on.clear()
    Stalls.has_one.clear()
    dag = DAG()
    reads = dag.vertex("reads", source, local_parallelism=1)
    makes = dag.vertex("makes", maker, local_parallelism=1) if maker else reads
    stalls = dag.vertex("stalls", Stalls, local_parallelism=2 if shape == "columns" else 1)
    edge = between(makes, stalls)
    dag.edge(edge.partitioned(columns=["n"]) if shape == "columns" else edge)
    if maker:
        dag.edge(between(reads, makes))
    job = pyr.new_light_job(dag).execute()
    assert Stalls.has_one.wait(20)
    before = -1
    while Watched.made != before:  # until nothing more is made
        before = Watched.made
        threading.Event().wait(0.1)
    Stalls.may_go_on.set()
    job.result(30)
    return before


@pytest.mark.parametrize("shape", ["unicast", "columns"])
@pytest.mark.parametrize("maker", [AtEnd, ForItems, ForOneItem])
def test_a_stalled_receiver_stops_its_senders(
    pyr: Instance, maker: type[Watched], shape: str
) -> None:
    if maker is AtEnd:
        made = made_for_a_stalled_receiver(pyr, AtEnd, shape, None)
    else:
        made = made_for_a_stalled_receiver(pyr, p.read_items(range(300)), shape, maker)
    assert made <= 32 + 32 + 20


def test_a_source_is_read_one_batch_at_a_time(pyr: Instance) -> None:
    source = p.read_items(Watched().batches())
    assert made_for_a_stalled_receiver(pyr, source, "unicast", None) <= 32 + 32 + 4


def test_a_flat_map_that_makes_batches_waits_for_its_receiver(pyr: Instance) -> None:
    made = made_for_a_stalled_receiver(
        pyr, p.read_items([0]), "unicast", p.flat_map(lambda _: Watched().batches())
    )
    assert made <= 32 + 32 + 20
