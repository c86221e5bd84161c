"""One deployment for all tests of durable jobs that do not harm its servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.durable.deployment import Deployment
from tests.redis_server import RedisServer


@pytest.fixture(scope="session")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: RedisServer
) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path_factory.mktemp("d"), shared_redis, coordinators=2, peers=3)
    deployment.start()
    yield deployment
    deployment.stop()
