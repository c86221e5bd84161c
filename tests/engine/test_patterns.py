"""Every forwarding pattern sends items to the right processors, for parallelism 1 to 4 on both
sides."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, Instance, InvalidDAG, ProcessorContext, between, from_
from pyrite import processors as p
from tests.test_dag import fork_and_rejoin


class Number(AbstractProcessor):
    """Emits (its index, n) for n from 0 to 99."""

    def init(self, context: ProcessorContext) -> None:
        self.rest = iter([(context.local_index, n) for n in range(100)])

    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


class Tag(AbstractProcessor):
    """Puts its own index before each item."""

    def init(self, context: ProcessorContext) -> None:
        self.index = context.local_index

    def try_process_0(self, item: Any) -> None:
        self.emit((self.index, item))


def tagged(
    pyr: Instance, pattern: Any, upstream: int, downstream: int
) -> list[tuple[int, tuple[int, int]]]:
    """Runs Number -> Tag over an edge; returns (receiver, (sender, n)) in the order in which each
    receiver saw them."""
    dag = DAG()
    number = dag.vertex("number", Number, local_parallelism=upstream)
    tag = dag.vertex("tag", Tag, local_parallelism=downstream)
    sink = dag.vertex("sink", p.write_list("tagged"), local_parallelism=1)
    edge = between(number, tag).config(queue_size=7)
    pattern(edge)
    dag.edge(edge).edge(between(tag, sink))
    pyr.list("tagged").clear()
    pyr.new_light_job(dag).execute().result(20)
    return list(pyr.list("tagged"))


SIZES = list(itertools.product((1, 2, 3, 4), repeat=2))
everything = {(sender, n) for sender in range(4) for n in range(100)}


@pytest.mark.parametrize(("upstream", "downstream"), SIZES)
def test_unicast_reaches_exactly_one_and_all_get_some(
    pyr: Instance, upstream: int, downstream: int
) -> None:
    found = tagged(pyr, lambda edge: edge.unicast(), upstream, downstream)
    assert sorted(item for _, item in found) == sorted(
        pair for pair in everything if pair[0] < upstream
    )
    assert {receiver for receiver, _ in found} == set(range(downstream))


@pytest.mark.parametrize(("upstream", "downstream"), SIZES)
def test_broadcast_reaches_all_once(pyr: Instance, upstream: int, downstream: int) -> None:
    found = tagged(pyr, lambda edge: edge.broadcast(), upstream, downstream)
    want = [
        (receiver, pair)
        for receiver in range(downstream)
        for pair in everything
        if pair[0] < upstream
    ]
    assert sorted(found) == sorted(want)


@pytest.mark.parametrize(("upstream", "downstream"), SIZES)
def test_partitioned_brings_equal_keys_together(
    pyr: Instance, upstream: int, downstream: int
) -> None:
    found = tagged(
        pyr, lambda edge: edge.partitioned(key=lambda pair: pair[1]), upstream, downstream
    )
    assert len(found) == 100 * upstream
    owner = {pair[1]: receiver for receiver, pair in found}
    assert all(owner[pair[1]] == receiver for receiver, pair in found)
    assert len(set(owner.values())) == downstream


def test_a_custom_partitioner_decides(pyr: Instance) -> None:
    found = tagged(
        pyr,
        lambda edge: edge.partitioned(
            key=lambda pair: pair[1], partitioner=lambda key, count: key % 2
        ),
        2,
        2,
    )
    assert {(pair[1] % 2, receiver) for receiver, pair in found} == {(0, 0), (1, 1)}


@pytest.mark.parametrize(("upstream", "downstream"), SIZES)
def test_all_to_one_reaches_one_processor(pyr: Instance, upstream: int, downstream: int) -> None:
    found = tagged(pyr, lambda edge: edge.all_to_one(), upstream, downstream)
    assert len({receiver for receiver, _ in found}) == 1
    assert len(found) == 100 * upstream


@pytest.mark.parametrize(("upstream", "downstream"), SIZES)
def test_isolated_keeps_to_matching_indexes_and_keeps_order(
    pyr: Instance, upstream: int, downstream: int
) -> None:
    found = tagged(pyr, lambda edge: edge.isolated(), upstream, downstream)
    assert len(found) == 100 * upstream
    smaller = min(upstream, downstream)
    assert all(receiver % smaller == sender % smaller for receiver, (sender, _) in found)
    for receiver, sender in itertools.product(range(downstream), range(upstream)):
        numbers = [n for r, (s, n) in found if (r, s) == (receiver, sender)]
        assert numbers == sorted(numbers)


def test_the_distributed_flag_changes_nothing_on_one_member(pyr: Instance) -> None:
    local = tagged(pyr, lambda edge: edge.partitioned(key=lambda pair: pair[1]), 2, 3)
    distributed = tagged(
        pyr, lambda edge: edge.distributed().partitioned(key=lambda pair: pair[1]), 2, 3
    )
    assert sorted(local) == sorted(distributed)


class Order(AbstractProcessor):
    """Emits the order of its calls."""

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.emit(ordinal)

    def complete_edge(self, ordinal: int) -> None:
        self.emit(f"edge {ordinal} ended")

    def complete(self) -> None:
        self.emit("all ended")


def joined(pyr: Instance, priorities: list[int], count: int = 3000) -> list[Any]:
    dag = DAG()
    order = dag.vertex("order", Order, local_parallelism=1)
    sink = dag.vertex("sink", p.write_list("seen"), local_parallelism=1)
    for ordinal, priority in enumerate(priorities):
        source = dag.vertex(f"source{ordinal}", p.read_items([ordinal] * count))
        dag.edge(from_(source).to(order, ordinal).priority(priority))
    dag.edge(between(order, sink))
    pyr.list("seen").clear()
    pyr.new_light_job(dag).execute().result(20)
    return list(pyr.list("seen"))


def test_all_edges_of_one_priority_end_before_the_next_is_looked_at(
    pyr_of_any_size: Instance,
) -> None:
    seen = joined(pyr_of_any_size, [2, -1, 2, 0])
    assert seen[: 2 * 3001] == [1] * 3000 + ["edge 1 ended"] + [3] * 3000 + ["edge 3 ended"]
    rest = seen[2 * 3001 :]
    assert rest[-1] == "all ended"
    assert sorted(map(str, rest[:-1])) == sorted(
        ["0"] * 3000 + ["2"] * 3000 + ["edge 0 ended", "edge 2 ended"]
    )


def test_edges_of_one_priority_are_taken_as_the_data_arrives(pyr: Instance) -> None:
    seen = joined(pyr, [0, 0])
    assert seen.index(1) < 3000  # long before edge 0 has ended


def test_complete_edge_is_called_once_per_edge_also_when_nothing_came(pyr: Instance) -> None:
    seen = joined(pyr, [0, 1], count=0)
    assert seen == ["edge 0 ended", "edge 1 ended", "all ended"]


def test_a_fork_that_rejoins_is_refused_without_a_buffered_edge_and_finishes_with_one(
    pyr_of_any_size: Instance,
) -> None:
    with pytest.raises(InvalidDAG, match="'second -> join'"):
        pyr_of_any_size.new_light_job(fork_and_rejoin(buffered=False)).execute()
    pyr_of_any_size.new_light_job(fork_and_rejoin(buffered=True)).execute().result(20)
    assert len(pyr_of_any_size.list("out")) == 20_000


def test_a_fork_through_a_vertex_that_takes_in_all_first_finishes_unbuffered(pyr: Instance) -> None:
    pyr.new_light_job(fork_and_rejoin(buffered=False, absorbing=True)).execute().result(20)
    assert len(pyr.list("out")) == 10_001


def test_a_slow_consumer_holds_its_producer_back(pyr: Instance) -> None:
    made = []

    class Stuck(AbstractProcessor):
        taken = 0

        def try_process_0(self, item: Any) -> bool:
            self.taken += self.taken < 10
            return self.taken < 10

    dag = DAG()
    source = dag.vertex("source", p.read_items(range(1_000_000)), local_parallelism=1)
    note = dag.vertex("note", p.map(lambda n: made.append(n) or n), local_parallelism=1)
    stuck = dag.vertex("stuck", Stuck, local_parallelism=1)
    dag.edge(between(source, note)).edge(
        between(note, stuck).config(queue_size=100, high_water_mark=50)
    )
    execution = pyr.new_light_job(dag).execute()
    while execution.metrics().get("stuck", {}).get("queue_fill", 0) < 100:
        assert not execution.done()
    execution.cancel()
    execution.exception(5)
    assert len(made) <= 10 + 100 + 50 + 1024  # taken, queued, in the outbox, in the inbox
