"""Members that Spark hosts give what local ones give."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from pyrite import AbstractProcessor, Instance, JobFailed, PyriteError
from pyrite import processors as p
from pyrite.cluster import Client
from pyrite.cluster.hosts.hosted import HostedCluster
from tests.cluster.test_light_jobs import straight
from tests.dags import Picture, pictures
from tests.redis_server import RedisServer


@pytest.fixture
def hosted(local_spark: Instance) -> Iterator[Client]:
    with HostedCluster(local_spark.spark(), 2) as cluster, cluster.client() as client:
        assert len(cluster.addresses) == 2
        yield client


@given(picture=pictures(distributed=True))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_dag_gives_the_same_on_members_that_spark_hosts(
    hosted: Client, picture: Picture
) -> None:
    for end in picture.ends():
        hosted.list(f"out{end}").clear()
    hosted.new_light_job(picture.build()).execute().result(20)
    found = {end: Counter(hosted.list(f"out{end}")) for end in picture.ends()}
    assert found == picture.expected(2)


def test_a_normal_job_is_refused_by_members_that_are_tasks_of_spark(hosted: Client) -> None:
    with pytest.raises(JobFailed, match=r"this member is a task of Spark.* run this job with"):
        hosted.new_job(straight(p.read_items([1]))).execute().result(20)


def test_more_members_than_slots_are_refused_at_once(local_spark: Instance) -> None:
    with pytest.raises(PyriteError, match="100 members need 100 slots of Spark"):
        HostedCluster(local_spark.spark(), 100)


def test_members_that_spark_hosts_have_their_collections_in_a_redis(
    local_spark: Instance, redis: RedisServer
) -> None:
    with (
        HostedCluster(local_spark.spark(), 2, collections=redis.url) as cluster,
        cluster.client() as client,
    ):
        client.map("m")[1] = 2
        assert client.map("m") == {1: 2}
    with redis.client() as plain:
        assert plain.hlen("pyrite:map:m") == 1


def test_if_a_member_dies_all_end_and_the_owner_is_told(local_spark: Instance) -> None:
    ended = threading.Event()
    with (
        HostedCluster(local_spark.spark(), 2, on_end=ended.set) as cluster,
        cluster.client() as client,
    ):
        cluster.check()
        execution = client.new_light_job(straight(Suicide)).execute()
        with pytest.raises(JobFailed):
            execution.result(20)
        assert ended.wait(60)
        with pytest.raises(PyriteError, match="inside Spark have ended: a member has died"):
            cluster.check()


class Suicide(AbstractProcessor):
    def complete(self) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True
