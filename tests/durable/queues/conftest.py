"""The contract tests run on each kind of queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.queues.queues import Queues
from tests.durable.queues.places import Job, Place, SqlitePlace


@pytest.fixture(params=["sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = SqlitePlace(tmp_path)
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
