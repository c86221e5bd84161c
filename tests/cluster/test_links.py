"""Distributed edges between members: nothing is lost, memory stays bounded, packets have their
size."""

from __future__ import annotations

import pickle
import random
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.cluster.edges.receiving import Arrivals, EdgeArrivals
from pyrite.cluster.edges.sending import MOST_UNSENT, SenderTasklet
from pyrite.cluster.edges.window import FIRST_WINDOW, UNIT, ReceiveWindow
from pyrite.collections import MemoryCollections
from pyrite.engine.execution import JobRun, Plan
from pyrite.engine.failure import Halt
from pyrite.engine.member import RunContext
from pyrite.engine.plan import EdgePlan, Topology, plan_topology
from pyrite.engine.queues import Done
from pyrite.engine.service import ExecutionService
from pyrite.engine.tasklets import DONE_NOW
from pyrite.exchange.groups import Packing, unpacked
from pyrite.wire.messages import DoneMessage, PacketMessage
from tests.cluster.mesh import EXECUTION, Mesh
from tests.dags import Picture, pictures


def one_edge(**config: Any) -> tuple[Topology, EdgePlan]:
    """Two members, and one distributed edge between them."""
    dag = DAG()
    a, b = dag.vertex("a", p.noop()), dag.vertex("b", p.noop())
    dag.edge(between(a, b).distributed().config(**config))
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    return topology, topology.vertices[0].outbound[0]


def sender_of(mesh: Mesh) -> SenderTasklet:
    (sender,) = mesh.links[0].tasklets
    return sender


@pytest.mark.parametrize("member_count", [2, 3])
@given(picture=pictures(distributed=True, most_vertices=4))
@settings(max_examples=30)
def test_a_random_dag_gives_the_same_over_the_links_of_members(
    member_count: int, picture: Picture
) -> None:
    collections, ended = MemoryCollections(), threading.Event()
    plan = Plan.of(picture.build(), member_count=member_count, default_parallelism=1)
    run = RunContext(
        job_name="test",
        job_id="test",
        execution_id="test",
        member_count=member_count,
        collections=collections,
    )
    mesh = Mesh(plan.topology, run.halt)
    service = ExecutionService(1)
    errors: list[BaseException | None] = []
    try:
        JobRun(
            plan,
            run,
            service=service,
            on_end=lambda error: (errors.append(error), ended.set())[-1],
            on_running=lambda: None,
            links=mesh.links,
        ).begin()
        for links in mesh.links:
            service.submit(links.tasklets, lambda _: None)
        assert ended.wait(20)
    finally:
        run.halt.cancel()
        service.close()
    assert errors == [None]
    assert {
        end: Counter(collections.list(f"out{end}")) for end in picture.ends()
    } == picture.expected(member_count)


def test_a_sender_packs_what_there_is_at_once_and_ends_with_the_done_marker() -> None:
    topology, edge = one_edge()
    mesh = Mesh(topology, Halt())
    outlet = mesh.links[0].outlet(edge, 0, 1, None)
    outlet.offer([1])
    sender_of(mesh).call()
    outlet.offer([2, 3])
    outlet.finish()
    mesh.links[0].done(edge, 0)
    assert sender_of(mesh).call() == DONE_NOW
    kinds = [type(message) for message in mesh.connections[0, 1].sent]
    assert kinds == [PacketMessage, PacketMessage, DoneMessage]
    inlet = mesh.links[1].inlet(edge)
    taken = [inlet.poll(), inlet.poll()]
    assert [packet.items for packet in taken if isinstance(packet, tuple)] == [[1], [2, 3]]
    assert isinstance(inlet.poll(), Done)


def test_with_nothing_consumed_what_the_receiver_holds_is_bounded() -> None:
    topology, edge = one_edge(queue_size=100_000)
    mesh = Mesh(topology, Halt())
    outlet = mesh.links[0].outlet(edge, 0, 1, None)
    for _ in range(3000):
        outlet.offer([bytes(30_000)] * 10)
        sender_of(mesh).call()
        mesh.ack()
    assert mesh.arrivals[1].held <= (FIRST_WINDOW + 3) * UNIT


def test_a_sender_has_no_room_while_too_much_waits_to_be_sent() -> None:
    topology, edge = one_edge()
    mesh = Mesh(topology, Halt())
    mesh.links[0].outlet(edge, 0, 1, None).offer([1])
    connection = mesh.connections[0, 1]
    connection.unsent = MOST_UNSENT + 1
    sender_of(mesh).call()
    held_back = list(connection.sent)
    connection.unsent = 0
    sender_of(mesh).call()
    assert (len(held_back), len(connection.sent)) == (0, 1)


def test_a_consumer_that_stalls_now_and_then_loses_and_doubles_nothing() -> None:
    topology, edge = one_edge(queue_size=5000)
    mesh = Mesh(topology, Halt())
    outlet, inlet = mesh.links[0].outlet(edge, 0, 1, None), mesh.links[1].inlet(edge)
    choice = random.Random(7)
    to_send, taken, done = list(range(50_000)), list[int](), False
    while not done:
        taken_by_queue = outlet.offer(to_send[: choice.randrange(3000)])
        del to_send[:taken_by_queue]
        if not to_send and not mesh.links[0]._senders[edge.id, 1]._finished:
            mesh.links[0].done(edge, 0)
        sender_of(mesh).call()
        for _ in range(choice.choice([0, 0, 0, 20])):
            packet = inlet.poll()
            done = isinstance(packet, Done)
            taken += packet.items if isinstance(packet, tuple) else []
        if choice.random() < 0.3:
            mesh.ack()
    assert taken == list(range(50_000))


items = st.one_of(
    st.integers(), st.text(max_size=40), st.tuples(st.text(), st.integers()), st.binary()
)
groups_of_items = st.lists(
    st.tuples(st.none() | st.integers(0, 9), st.lists(items, min_size=1, max_size=30)),
    min_size=1,
    max_size=4,
)


@given(groups=groups_of_items, limit=st.integers(40, 400))
def test_packets_bring_all_items_in_order_and_keep_their_size(
    groups: list[tuple[int | None, list[Any]]], limit: int
) -> None:
    _, edge = one_edge(packet_size_limit=limit)
    packets = list(Packing(edge).packets(groups))
    flat = [(partition, item) for partition, of_group in groups for item in of_group]
    arrived = [each for payload, _ in packets for each in unpacked(payload)]
    assert [(packet.partition, item) for packet in arrived for item in packet.items] == flat
    assert sum(count for _, count in packets) == len(flat)
    assert all(len(payload) <= 2 * limit for payload, count in packets if count > 1)


def test_an_item_that_cannot_be_pickled_is_named() -> None:
    topology, edge = one_edge()
    halt = Halt()
    mesh = Mesh(topology, halt)
    lock = threading.Lock()
    mesh.links[0].outlet(edge, 0, 1, None).offer([1, lock])
    assert sender_of(mesh).call() == DONE_NOW
    assert halt.failure is not None
    assert (halt.failure.edge, halt.failure.item) == ("'a -> b'", lock)


def test_an_item_that_is_too_large_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrite.exchange.groups.LARGEST_ITEM", 1000)
    topology, edge = one_edge(packet_size_limit=100)
    halt = Halt()
    mesh = Mesh(topology, halt)
    mesh.links[0].outlet(edge, 0, 1, None).offer([1, b"x" * 2000])
    assert sender_of(mesh).call() == DONE_NOW
    assert "up to 1000 bytes" in str(halt.error("job"))


def test_partitions_of_one_processor_share_a_queue() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.noop()), dag.vertex("b", p.noop(), local_parallelism=2)
    dag.edge(between(a, b).distributed().partitioned())
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    edge = topology.vertices[0].outbound[0]
    links = Mesh(topology, Halt()).links[0]
    remote = [n for n in range(topology.partition_count) if topology.member_of(n) == 1]
    assert len({links.outlet(edge, 0, 1, partition) for partition in remote}) == 2


def test_a_packet_belongs_to_its_execution_and_edge() -> None:
    topology, edge = one_edge()
    mesh = Mesh(topology, Halt())
    mesh.links[0].outlet(edge, 0, 1, None).offer(["x"])
    sender_of(mesh).call()
    (packet,) = mesh.connections[0, 1].sent
    assert isinstance(packet, PacketMessage)
    assert (packet.execution, packet.edge, packet.item_count) == (EXECUTION, edge.id, 1)
    assert pickle.loads(packet.items) == [(None, ["x"])]


def test_what_arrives_while_its_edge_is_made_for_the_tasklets_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrivals, races = Arrivals(), [True]

    def make() -> EdgeArrivals:
        if races:
            races.clear()
            arrivals.done("sender", 7)  # as by the wire's thread
        return EdgeArrivals()

    monkeypatch.setattr("pyrite.cluster.edges.receiving.EdgeArrivals", make)
    assert arrivals.edge(7).done_senders == {"sender"}


def test_a_sender_whose_first_packet_arrives_while_the_multiplier_is_set_gets_it_too() -> None:
    edge = EdgeArrivals()

    class Raced(ReceiveWindow):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if value == 5:
                edge.packet("other", 1, b"")  # as by the wire's thread

    edge.windows["sender"] = Raced(3)
    edge.use_multiplier(5)
    assert [window.multiplier for window in edge.windows.values()] == [5, 5]


def test_a_multiplier_that_is_set_while_a_window_is_made_counts_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edge = EdgeArrivals()

    def make(multiplier: int) -> ReceiveWindow:
        edge.use_multiplier(5)  # as by the thread that prepares the tasklets
        return ReceiveWindow(multiplier)

    monkeypatch.setattr("pyrite.cluster.edges.receiving.ReceiveWindow", make)
    edge.packet("sender", 1, b"")
    assert edge.windows["sender"].multiplier == 5
