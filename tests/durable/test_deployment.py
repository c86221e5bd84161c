"""Durable jobs on real servers: ZooKeeper, NATS and Redis."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pyrite import Execution, Instance, JobConfig
from pyrite.durable.hosts.watching import Watcher
from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.store import Store
from tests.dags import Picture, pictures
from tests.durable.counting import counting, expected
from tests.durable.deployment import Deployment

PATIENCE = 60


@pytest.fixture
def pyr(deployment: Deployment) -> Iterator[Instance]:
    with deployment.instance() as pyr:
        yield pyr


def test_counts_are_exact(pyr: Instance) -> None:
    job = pyr.new_durable_job(counting(20_000, "counts"), JobConfig(members=2))
    job.execute().result(PATIENCE)
    assert pyr.map("counts") == expected(20_000)


def test_work_goes_on_when_a_peer_and_the_leading_coordinator_die(
    deployment: Deployment, pyr: Instance
) -> None:
    store = deployment.store()
    job = pyr.new_durable_job(counting(200_000, "more"), JobConfig(members=2)).execute()
    until(store, lambda: any("active" in text for text in states(store)))
    epoch = store.watch(paths.EPOCH)
    leader = deployment.leader(store)
    leader.kill()
    died = time.monotonic()
    deployment.peers[0].kill()
    until(store, lambda: store.watch(paths.EPOCH) != epoch)
    took = time.monotonic() - died
    leader.start()
    deployment.peers[0].start()
    seen = list(metrics_until_the_end(job))
    job.result(PATIENCE)
    store.close()
    assert pyr.map("more") == expected(200_000)
    assert took < 3
    assert any(seen), "nothing was told while the job ran"
    for before, after in pairwise([*seen, job.metrics()]):
        for vertex, numbers in before.items():
            assert numbers["received"] <= after[vertex]["received"], vertex
            assert numbers["emitted"] <= after[vertex]["emitted"], vertex
    assert job.metrics()["in"]["emitted"] == 200_000


def test_a_deployment_is_watched_by_its_url(deployment: Deployment, pyr: Instance) -> None:
    job = pyr.new_durable_job(counting(2_000, "watched"), JobConfig(members=2)).execute()
    with closing(Watcher(deployment.url)) as watcher:
        view = watcher.deployment()
        job.result(PATIENCE)
        ended = watcher.job(job.id)
    assert (len(view.coordinators), view.problem) == (2, None)
    assert view.jobs[0].id == job.id
    assert {queue.job for queue in view.queues} <= {job.id}
    assert (ended.state, ended.items_in) == ("completed", 2_000)


def test_a_job_completes_when_the_redis_is_back(deployment: Deployment, pyr: Instance) -> None:
    deployment.redis.stop()
    try:
        job = pyr.new_durable_job(counting(1_000, "late"), JobConfig(members=1)).execute()
        store = deployment.store()
        until(store, lambda: job.done() or open_parts(job) == 1)  # the completion
        store.close()
        with pytest.raises(TimeoutError):
            job.result(1)
    finally:
        deployment.redis.start()
    job.result(PATIENCE)
    assert pyr.map("late") == expected(1_000)


def metrics_until_the_end(job: Execution) -> Iterator[dict[str, Any]]:
    while not job.done():
        yield job.metrics()
        time.sleep(0.1)


def open_parts(job: Execution) -> int:
    return sum(parts - complete for _, complete, parts in job.progress())


def states(store: Store) -> Collection[str]:
    return store.below("/peer-state").values()


def until(store: Store, look: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < give_up
        store.changed(0.05)


@pytest.mark.parametrize("number", range(10))
def test_a_random_dag_gives_what_the_reference_says(
    drawn: list[tuple[Picture, int]], pyr: Instance, number: int
) -> None:
    picture, members = drawn[number]
    for end in picture.ends():
        pyr.list(f"out{end}").clear()
    job = pyr.new_durable_job(picture.build(), JobConfig(members=members))
    job.execute().result(PATIENCE)
    found = {end: Counter(pyr.list(f"out{end}")) for end in picture.ends()}
    assert found == picture.expected(members)


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Picture, int]]:
    """Drawn before an instance is open: its threads use `random`, which hypothesis forbids."""
    found: list[tuple[Picture, int]] = []

    @given(picture=pictures(distributed=True), members=st.integers(1, 3))
    @settings(max_examples=10, phases=[Phase.generate], database=None)
    def draw(picture: Picture, members: int) -> None:
        found.append((picture, members))

    draw()
    return found
