"""The contract tests run on each kind of queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.queues.queues import Queues
from tests.durable.queues.places import Job, NatsPlace, Place, SqlitePlace
from tests.nats import Nats


@pytest.fixture(scope="session")
def two_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Nats]]:
    """Two servers that do not know of each other."""
    servers = [Nats(tmp_path_factory.mktemp("nats")) for _ in range(2)]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture(params=["sqlite", "nats", "two nats"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place: Place
    if request.param == "sqlite":
        place = SqlitePlace(tmp_path)
    else:
        servers: list[Nats] = request.getfixturevalue("two_nats")
        count = 2 if request.param == "two nats" else 1
        place = NatsPlace([[server.url] for server in servers[:count]])
    yield place
    place.close()


@pytest.fixture
def queues(place: Place) -> Queues:
    return place.open()


@pytest.fixture
def job(queues: Queues) -> Iterator[Job]:
    job = Job(queues).begin("a", "b", "c")
    yield job
    queues.close_job(job.name)
