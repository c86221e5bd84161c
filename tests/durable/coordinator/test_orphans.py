"""What a client leaves that dies while it submits a job is deleted, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from pyrite.durable.coordinator.orphans import EVERY
from pyrite.durable.protocol.tree import paths
from tests.durable.coordinator.places import Places
from tests.durable.coordinator.stage import Stage
from tests.durable.protocol.shapes import ONE


class Listed:
    """Queues of jobs; it counts how often a leader has listed them."""

    def __init__(self, *jobs: str) -> None:
        self.jobs = jobs
        self.times = 0

    def __call__(self) -> tuple[str, ...]:
        self.times += 1
        return self.jobs


def look(stage: Stage, queues: Listed) -> None:
    """The leader lists the queues, and then the nodes."""
    leader = stage.leader or stage.elect()
    stage.now += EVERY
    seen = queues.times
    while queues.times == seen or leader.looks_for_orphans:
        leader.step(0.1)
    stage.coordinate()


def look_twice(stage: Stage, queues: Listed) -> None:
    look(stage, queues)
    look(stage, queues)


def test_queues_without_a_job_are_deleted(places: Places) -> None:
    queues = Listed("lost")
    stage = Stage(places.empty(), list_queues=queues)
    look(stage, queues)
    assert stage.closed == []
    look(stage, queues)
    assert stage.closed == ["lost"]
    assert stage.left() == set()
    stage.close()


@pytest.mark.parametrize("node", [paths.catalog, paths.workflow])
def test_nodes_without_a_plan_are_deleted(places: Places, node: Callable[[str], str]) -> None:
    queues = Listed()
    stage = Stage(places.empty(), list_queues=queues)
    stage.store.create(node("lost"))
    stage.store.create(paths.shape("lost"))
    look_twice(stage, queues)
    assert stage.store.get(node("lost")) is None
    assert stage.store.get(paths.shape("lost")) is None
    assert stage.closed == ["lost"]
    stage.close()


def test_the_queues_of_jobs_and_of_living_clients_stay(places: Places) -> None:
    queues = Listed("early", "running", "failed")
    stage = Stage(places.empty(), list_queues=queues)
    stage.store.create_ephemeral(paths.submitting("early"))
    stage.store.create(paths.catalog("early"))
    stage.submit("running", ONE)
    stage.store.create(paths.plan("failed"))
    stage.coordinate()
    stage.closed.clear()
    look_twice(stage, queues)
    assert stage.closed == []
    assert stage.store.get(paths.catalog("early")) is not None
    stage.close()


def test_a_client_that_has_a_new_session_at_the_second_look_is_alive(places: Places) -> None:
    queues = Listed("slow")
    stage = Stage(places.empty(), list_queues=queues)
    look(stage, queues)
    stage.store.create_ephemeral(paths.submitting("slow"))
    look(stage, queues)
    assert stage.closed == []
    stage.close()


def test_queues_that_cannot_be_listed_are_listed_later(places: Places) -> None:
    calls = count()

    class Broken(Listed):
        def __call__(self) -> tuple[str, ...]:
            super().__call__()
            if next(calls) == 0:
                raise ConnectionError("no servers")
            return self.jobs

    queues = Broken("lost")
    stage = Stage(places.empty(), list_queues=queues)
    look(stage, queues)
    look_twice(stage, queues)
    assert stage.closed == ["lost"]
    stage.close()
