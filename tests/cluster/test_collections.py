"""Named maps and lists of a cluster: what a dead member took along is told once. What holds for all
kinds of them is in tests/collections."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, JobFailed
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.cluster.collections.notes import MemberNotes, Notes, PartLost, check
from pyrite.cluster.collections.storage import owner_of
from pyrite.engine.plan import plan_topology
from pyrite.partitioning import partition_id
from pyrite.wire.keys import keys_from
from tests.cluster.test_faults import wait_for_new_incarnation
from tests.cluster.test_light_jobs import run, straight


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


def killed(cluster: LocalCluster, index: int) -> None:
    pids = cluster.pids
    os.kill(pids[index], signal.SIGKILL)
    wait_for_new_incarnation(cluster, pids, index)


def test_a_client_is_told_of_a_loss_in_a_map_that_only_its_job_has_used() -> None:
    pairs = [(n, n) for n in range(20)]
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        run(client, straight(p.read_items(pairs), p.write_map("out")))
        killed(cluster, 1)
        with pytest.raises(PartLost, match=rf"map 'out'.*member {cluster.addresses[1]}"):
            len(client.map("out"))
        assert set(client.map("out")) == {n for n in range(20) if owner_of(n, 2) == 0}


def test_a_job_is_told_of_a_loss_in_a_map_that_only_clients_have_used() -> None:
    reading = straight(p.read_map("in"), p.write_list("out"))
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        client.map("in").update({n: n for n in range(20)})
        killed(cluster, 1)
        with pytest.raises(JobFailed, match=rf"map 'in'.*member {cluster.addresses[1]}"):
            run(client, reading)
        run(client, reading)


def test_each_client_that_was_there_is_told_of_a_loss_whoever_used_the_list() -> None:
    name = next(f"l{n}" for n in range(99) if owner_of(f"l{n}", 2) == 1)
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        with Client([cluster.addresses[1]], keys_from(cluster.secret)) as other:
            other.list(name).append(1)
            killed(cluster, 1)
            for each in (client, other):
                with pytest.raises(PartLost, match=f"list '{name}' has lost what it held"):
                    each.list(name).append(2)
                each.list(name).append(2)
        with cluster.client() as late:
            assert late.list(name) == [2, 2]


def test_a_collection_that_is_new_since_a_death_has_lost_nothing() -> None:
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        client.map("old")[1] = 1
        killed(cluster, 1)
        client.map("new").update({n: n for n in range(20)})
        run(client, straight(p.read_map("new"), p.write_list("out")))
        assert len(client.list("out")) == 20


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


def test_a_member_that_is_new_hears_what_was_used_before_it() -> None:
    old, new = MemberNotes(), MemberNotes()
    old.hear({("map", "m"): {"a": "1", "b": "1"}}, [("a", "1"), ("b", "1")])
    members = [("a", "1"), ("b", "2")]
    new.hear(old.heard, members)
    check("map", "m", new.of("map", "m"), members)  # it has lost nothing that it could tell of
    note = Notes({"a": "1", "b": "1"}).of("map", "m")
    with pytest.raises(PartLost, match="member b"):
        check("map", "m", note, members, new.first("map", "m"))


def test_a_collection_that_is_first_used_while_a_member_is_missing_has_lost_nothing() -> None:
    notes = MemberNotes()
    notes.hear({("map", "m"): {"a": "1"}}, [("a", "1"), ("b", None)])
    note = Notes({"a": "1", "b": "1"}).of("map", "m")
    check("map", "m", note, [("a", "1"), ("b", None)], notes.first("map", "m"))
    notes.connected("b", "2")
    check("map", "m", note, [("a", "1"), ("b", "2")], notes.first("map", "m"))
    check("map", "m", notes.of("map", "m"), [("a", "1"), ("b", "2")])


def test_jobs_are_told_of_a_loss_once_whatever_the_number_of_members() -> None:
    writing = straight(p.read_items([(1, 1)]), p.write_map("out"))
    with LocalCluster(members=3) as cluster, cluster.client() as client:
        run(client, writing)
        killed(cluster, 2)
        with pytest.raises(JobFailed, match=rf"map 'out'.*member {cluster.addresses[2]}"):
            run(client, writing)
        run(client, writing)
