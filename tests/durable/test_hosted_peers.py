"""Peers inside Spark do durable jobs, and end with their Spark job."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pyrite import Instance, PyriteError
from pyrite import processors as p
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.hosts.hosted import HostedPeers
from pyrite.durable.store.sqlite import SqliteStore
from tests.cluster.test_light_jobs import straight
from tests.durable.threads import running


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance with the Spark session is shared, so its threads stay."""


def test_peers_inside_spark_do_a_job_and_end_when_they_are_closed(
    local_spark: Instance, tmp_path: Path
) -> None:
    with running(tmp_path, peers=0) as threads:
        with HostedPeers(local_spark.spark(), str(tmp_path), peers=1):
            dag = straight(p.read_items(range(100)), p.map(lambda n: n + 1), p.write_list("out"))
            threads.execute(dag, members=2).result(60)
        store = SqliteStore(tmp_path)
        give_up = time.monotonic() + 30
        while store.children("/pulse") and time.monotonic() < give_up:
            store.changed(0.05)
        assert store.children("/pulse") == []
        store.close()
    assert sorted(FolderCollections(tmp_path).list("out")) == list(range(1, 101))


def test_more_peers_than_slots_are_refused(local_spark: Instance, tmp_path: Path) -> None:
    with pytest.raises(PyriteError, match="slots of Spark"):
        HostedPeers(local_spark.spark(), str(tmp_path), peers=1000)
