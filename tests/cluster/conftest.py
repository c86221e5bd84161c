"""Clusters that tests share: to start one takes most of a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrite.cluster import Client, LocalCluster


@pytest.fixture(scope="session", params=[1, 2, 3], ids=lambda count: f"{count} members")
def any_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    with LocalCluster(members=request.param) as cluster:
        cluster.wait_until_complete()
        yield cluster


@pytest.fixture
def any_client(any_cluster: LocalCluster) -> Iterator[Client]:
    with any_cluster.client() as client:
        yield client


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(members=2) as cluster:
        cluster.wait_until_complete()
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    cluster.wait_until_complete()
    with cluster.client() as client:
        yield client
