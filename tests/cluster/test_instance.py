"""An instance with members of its own, and clients by address."""

from __future__ import annotations

import os

import pytest

import pyrite
from pyrite import PyriteError
from pyrite import processors as p
from pyrite.cluster import LocalCluster
from tests.cluster.test_light_jobs import Endless, Where, straight
from tests.test_forks import in_child


def test_light_jobs_of_an_instance_with_members_run_on_these() -> None:
    with pyrite.instance(members=2) as pyr:
        assert pyr.processes() == []  # nothing is started before it is needed
        pyr.new_light_job(
            straight(Where, p.write_list("where"), distributed=False)
        ).execute().result(20)
        assert sorted(pyr.list("where")) == [0, 1]
        assert pyr.collections() == [("list", "where", list(pyr.list("where")))]
        assert pyr.light_jobs() == []
        execution = pyr.new_light_job(straight(Endless, p.noop())).execute()
        assert pyr.light_jobs() == [execution]
        execution.cancel()
        roles, pids = zip(*pyr.processes())
        assert roles == ("member", "member")
        assert os.getpid() not in pids
    with pytest.raises(PyriteError, match="closed"):
        pyr.new_light_job(straight(p.read_items([1]))).execute()


@pytest.mark.parametrize("members", [0, -1, True, "two"])
def test_a_number_of_members_that_is_none_is_refused(members: object) -> None:
    with pytest.raises(PyriteError, match="members must be a whole number"):
        pyrite.instance(members=members)  # type: ignore[arg-type]


def test_a_client_reaches_a_cluster_by_its_addresses_and_secret(cluster: LocalCluster) -> None:
    url = "pyrite://" + ",".join(["127.0.0.1:1", *cluster.addresses])
    with pyrite.client(url, secret=cluster.secret) as client:
        client.map("by address")["key"] = "value"
        assert client.map("by address")["key"] == "value"


def test_a_client_has_no_processes_and_says_where_spark_is(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        assert client.processes() == []
        with pytest.raises(PyriteError, match="the member that runs a normal job has it"):
            client.spark()


def test_a_client_with_another_secret_is_not_let_in(cluster: LocalCluster) -> None:
    with pytest.raises(PyriteError, match="no member of the cluster can be reached"):
        pyrite.client(f"pyrite://{cluster.addresses[0]}", secret="another secret, long enough")


@pytest.mark.parametrize("url", ["a:5701", "pyrite://", "pyrite://a", "pyrite://a:b", 5701])
def test_an_address_that_is_none_is_refused(url: object) -> None:
    with pytest.raises(PyriteError, match="address of a cluster"):
        pyrite.client(url)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_does_not_use_the_client_of_its_parent(cluster: LocalCluster) -> None:
    def use_it() -> None:
        client.close()  # does nothing there
        client.map("forked").copy()

    with cluster.client() as client:
        error = in_child(use_it)
        assert isinstance(error, PyriteError)
        assert "forked" in str(error)
        client.map("forked")[1] = 1
        assert client.map("forked") == {1: 1}
