"""Named maps and lists of a cluster: the same as in memory, and what a dead member took along is
told once."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite import DAG
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.cluster.collections.notes import Notes, PartLost, check
from pyrite.cluster.collections.storage import owner_of
from pyrite.collections import MemoryCollections
from pyrite.engine.plan import plan_topology
from pyrite.partitioning import partition_id
from tests.cluster.test_faults import wait_for_new_incarnation

keys = st.one_of(st.integers(0, 5), st.text(max_size=1), st.none(), st.just(float("inf")))
map_steps = st.one_of(
    st.tuples(st.just("__setitem__"), st.tuples(keys, st.integers())),
    st.tuples(st.sampled_from(["__getitem__", "__delitem__", "pop"]), st.tuples(keys)),
    st.tuples(st.sampled_from(["get", "setdefault", "pop"]), st.tuples(keys, st.integers())),
    st.tuples(st.just("update"), st.tuples(st.dictionaries(keys, st.integers(), max_size=3))),
    st.tuples(st.just("__contains__"), st.tuples(keys)),
    st.tuples(st.sampled_from(["__len__", "clear", "copy"]), st.just(())),
)
indexes = st.one_of(st.integers(-3, 3), st.slices(4))
list_steps = st.one_of(
    st.tuples(st.sampled_from(["append", "remove", "index"]), st.tuples(st.integers(0, 3))),
    st.tuples(st.just("extend"), st.tuples(st.lists(st.integers(0, 3), max_size=3))),
    st.tuples(st.sampled_from(["__getitem__", "__delitem__"]), st.tuples(indexes)),
    st.tuples(st.just("insert"), st.tuples(st.integers(-3, 3), st.integers(0, 3))),
    st.tuples(st.just("pop"), st.tuples(st.integers(-3, 3))),
    st.tuples(st.sampled_from(["__len__", "reverse", "clear", "copy"]), st.just(())),
)
over_all_examples = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(target: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(target, method)(*arguments)
    except (KeyError, IndexError, ValueError) as error:
        return type(error)


@given(steps=st.lists(map_steps, max_size=8))
@over_all_examples
def test_a_map_of_a_cluster_does_what_one_in_memory_does(any_client: Client, steps: Any) -> None:
    ours, reference = any_client.map("steps"), MemoryCollections().map("steps")
    ours.clear()
    for method, arguments in steps:
        assert outcome(ours, method, arguments) == outcome(reference, method, arguments)
    assert ours == reference.copy()
    assert len(ours) == len(reference)


@given(steps=st.lists(list_steps, max_size=8))
@over_all_examples
def test_a_list_of_a_cluster_does_what_one_in_memory_does(any_client: Client, steps: Any) -> None:
    ours, reference = any_client.list("steps"), MemoryCollections().list("steps")
    ours.clear()
    for method, arguments in steps:
        assert outcome(ours, method, arguments) == outcome(reference, method, arguments)
    assert ours == reference.copy()


def test_what_a_dead_member_took_along_is_told_once() -> None:
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        numbers = client.map("numbers")
        numbers.update({n: n for n in range(20)})
        pids = cluster.pids
        os.kill(pids[1], signal.SIGKILL)
        wait_for_new_incarnation(cluster, pids, 1)
        with pytest.raises(PartLost, match=rf"map 'numbers'.*member {cluster.addresses[1]}"):
            numbers[100] = 100
        assert set(numbers) == {n for n in range(20) if owner_of(n, 2) == 0}


@given(key=st.integers() | st.text(), members=st.integers(1, 200))
def test_an_entry_is_where_a_distributed_edge_brings_its_key(key: Any, members: int) -> None:
    dag = DAG()
    dag.vertex("a", p.noop())
    topology = plan_topology(dag, member_count=members, default_parallelism=1)
    partition = partition_id(key, topology.partition_count)
    assert owner_of(key, members) == topology.member_of(partition)


def test_a_member_that_is_missing_for_now_is_no_loss_yet() -> None:
    note = Notes().of("map", "m")
    check("map", "m", note, [("a", "1"), ("b", "1")])
    check("map", "m", note, [("a", "1"), ("b", None)])
    check("map", "m", note, [("a", "1"), ("b", "1")])
    with pytest.raises(PartLost, match="member b"):
        check("map", "m", note, [("a", "1"), ("b", "2")])
    check("map", "m", note, [("a", "1"), ("b", "2")])


def test_a_list_is_lost_with_the_owner_of_its_name_only() -> None:
    owner = owner_of("l", 2)
    note = Notes().of("list", "l")
    members = [("a", "1"), ("b", "1")]
    check("list", "l", note, members)
    members[1 - owner] = (members[1 - owner][0], "2")
    check("list", "l", note, members)
    members[owner] = (members[owner][0], "2")
    with pytest.raises(PartLost, match="list 'l' has lost what it held"):
        check("list", "l", note, members)
