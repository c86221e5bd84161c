"""Each test of a leader runs once for each kind of store. All share one ZooKeeper server; each has
clusters of its own in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durable.coordinator.places import Places
from tests.zookeeper import ZooKeeper


@pytest.fixture(scope="package")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"), session=2.0)
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["sqlite", "zookeeper"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    if request.param == "sqlite":
        return Places(str(tmp_path), is_slow=False)
    server = request.getfixturevalue("zookeeper")
    return Places(f"zk://{server.address}", is_slow=True)
