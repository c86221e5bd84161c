"""Each contract test runs once for each kind of store. All tests share one ZooKeeper server, and
each has a cluster of its own in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from pyrite.durable.store.store import Store
from tests.durable.store.places import Place
from tests.zookeeper import ZooKeeper

SESSION = 1.0
CLUSTERS = count()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"), session=SESSION)
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["sqlite", "zookeeper"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        place = Place(str(tmp_path / "folder"), session=0.2)
    else:
        place = cluster(request.getfixturevalue("zookeeper").address)
    yield place
    place.close()


def cluster(hosts: str, options: str = "") -> Place:
    """A new cluster."""
    url = f"zk://{hosts}/test-{next(CLUSTERS)}?session={SESSION}{options}"
    return Place(url, session=SESSION)


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


@pytest.fixture
def other(place: Place) -> Store:
    """Another session."""
    return place.open()
