"""Consumers that stall, over real members: nothing is lost or doubled, memory is bounded, and other
edges and jobs go on."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, ProcessorContext, between
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from tests.cluster.test_light_jobs import nothing_is_left, run, running, straight

ITEMS, ITEM_BYTES = 8000, 50_000
MOST_GROWTH = 120 << 20
"""The window of one sender has 50 MB; there are 400 MB to send, half of them to another member."""


class StallingCheck(AbstractProcessor):
    """Stalls for 300 to 900 ms every 1 to 3 s, and must get each number once."""

    cooperative = False

    def __init__(self) -> None:
        self.choice = random.Random(5)
        self.next_stall = time.monotonic() + 0.5
        self.got: list[int] = []

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        number, _ = item
        self.got.append(number)
        if len(self.got) % 4 == 0:
            time.sleep(0.001)
        if time.monotonic() > self.next_stall:
            time.sleep(self.choice.uniform(0.3, 0.9))
            self.next_stall = time.monotonic() + self.choice.uniform(1, 3)
        return True

    def complete(self) -> bool:
        if self.got and sorted(self.got) != list(range(ITEMS)):
            raise AssertionError(f"wrong: {len(self.got)} items")
        return True


def peak_bytes(pid: int) -> int:
    """The most memory that a process has used since its peak was reset."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def reset_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


@pytest.mark.timeout(60)
def test_a_consumer_that_stalls_loses_and_doubles_nothing_and_memory_is_bounded() -> None:
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(ITEMS)))
    heavy = dag.vertex("heavy", p.map(lambda n: (n, bytes(ITEM_BYTES))))
    check = dag.vertex("check", StallingCheck)
    dag.edge(between(numbers, heavy))
    dag.edge(between(heavy, check).distributed().all_to_one().config(queue_size=64))
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        run(client, straight(p.read_items([1]), p.noop()))
        for pid in cluster.pids:
            reset_peak(pid)
        before = [peak_bytes(pid) for pid in cluster.pids]
        run(client, dag, 50)
        after = [peak_bytes(pid) for pid in cluster.pids]
        assert nothing_is_left(client)
    assert [b - a < MOST_GROWTH for a, b in zip(before, after)] == [True, True]


class Gate(AbstractProcessor):
    """Takes nothing until the map 'gate' is open."""

    def init(self, context: ProcessorContext) -> None:
        self.gate = context.collections.map("gate")

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        return "open" in self.gate


def test_a_stalled_edge_holds_up_neither_another_edge_nor_another_job(client: Client) -> None:
    dag = DAG()
    heavy = dag.vertex("heavy", p.read_items([bytes(100_000)] * 1000))
    gate = dag.vertex("gate", Gate)
    light = dag.vertex("light", p.read_items(range(1000)))
    flows = dag.vertex("flows", p.write_list("flows"))
    dag.edge(between(heavy, gate).distributed().config(queue_size=8))
    dag.edge(between(light, flows).distributed())
    client.map("gate").clear()
    client.list("flows").clear()
    execution = client.new_light_job(dag).execute()
    give_up = time.monotonic() + 10
    while len(client.list("flows")) < 1000:
        assert time.monotonic() < give_up
    for _ in range(10):
        run(client, straight(p.read_items(range(1000)), p.noop()), 5)
    assert running(client, 1)
    client.map("gate")["open"] = True
    execution.result(20)
    assert sorted(client.list("flows")) == list(range(1000))
    assert nothing_is_left(client)
