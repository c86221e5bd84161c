"""Named maps and lists of a cluster: what a dead member took along is told once. What holds for all
kinds of them is in tests/collections."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG
from pyrite import processors as p
from pyrite.cluster import LocalCluster
from pyrite.cluster.collections.notes import Notes, PartLost, check
from pyrite.cluster.collections.storage import owner_of
from pyrite.engine.plan import plan_topology
from pyrite.partitioning import partition_id
from tests.cluster.test_faults import wait_for_new_incarnation


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
