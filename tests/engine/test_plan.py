"""Partitions are distributed evenly over members and their processors, and in the same way for
every edge."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.engine.plan import Topology, isolated_targets, plan_topology


@given(st.integers(1, 8), st.integers(1, 8))
def test_each_processor_in_the_cluster_has_its_share_of_the_partitions(
    members: int, parallelism: int
) -> None:
    topology = Topology((), members)
    owners = Counter(
        (topology.member_of(partition), topology.processor_of(partition, parallelism))
        for partition in range(topology.partition_count)
    )
    assert len(owners) == members * parallelism
    assert (
        max(owners.values()) - min(owners.values())
        <= 1 + topology.partition_count // (members * parallelism) // 4
    )


@given(st.integers(1, 6), st.integers(1, 6))
def test_isolated_edges_reach_every_processor_and_only_matching_ones(
    upstream: int, downstream: int
) -> None:
    targets = [isolated_targets(i, upstream, downstream) for i in range(upstream)]
    assert {target for each in targets for target in each} == set(range(downstream))
    smaller = min(upstream, downstream)
    assert all(target % smaller == i % smaller for i, each in enumerate(targets) for target in each)


def test_an_edge_is_distributed_only_among_several_members_and_minus_one_is_the_pool() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([1])), dag.vertex("b", p.noop(), local_parallelism=3)
    dag.edge(between(a, b).distributed())
    alone = plan_topology(dag, member_count=1, default_parallelism=2)
    several = plan_topology(dag, member_count=2, default_parallelism=2)
    assert [vertex.local_parallelism for vertex in alone.vertices] == [2, 3]
    assert not alone.vertices[0].outbound[0].is_distributed
    assert several.vertices[0].outbound[0].is_distributed
