"""The randomized fault run: processes and servers are killed and stopped all the time, and every
input is counted exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyrite import Instance, JobConfig
from pyrite.durable.queues.queues import Queues
from pyrite.durable.store.store import Store
from pyrite.job import JobStatus
from tests.durable.counting import counting, expected
from tests.durable.deployment import Deployment
from tests.durable.faults import PATIENCE, Faults, Group, Witness, soak_seconds, soak_seed
from tests.redis_server import RedisServer


def run(
    pyr: Instance,
    faults: Faults,
    open_store: Callable[[], Store],
    open_queues: Callable[[], Queues],
    *,
    items: int,
    seconds: float,
) -> None:
    """Jobs one after the other for so long, and at least one."""
    witness = Witness(open_store)
    end, number = time.monotonic() + seconds, 0
    while number == 0 or time.monotonic() < end:
        name = f"counts{number}"
        job = pyr.new_durable_job(counting(items, name), JobConfig(members=4)).execute()
        faults.during([job], meanwhile=witness.look)
        faults.heal()
        job.result(PATIENCE)
        assert pyr.map(name) == expected(items)
        pyr.map(name).clear()
        number += 1
    assert {each.status for each in pyr.jobs()} == {JobStatus.COMPLETED}
    nothing_is_left(open_store, open_queues)
    witness.look()
    witness.close()
    assert witness.checked > 0
    print(f"{number} jobs, {faults.count} faults, {witness.checked} transitions")


def nothing_is_left(open_store: Callable[[], Store], open_queues: Callable[[], Queues]) -> None:
    store, queues = open_store(), open_queues()
    give_up = time.monotonic() + PATIENCE
    while left := Witness.left(store) | {*queues.jobs()}:
        assert time.monotonic() < give_up, left
        store.changed(0.2)
    store.close()
    queues.close()


def on_a_deployment(
    folder: Path, redis: RedisServer, *, seed: int, items: int, seconds: float, nats: int
) -> None:
    print(f"PYRITE_SOAK_SEED={seed}")
    deployment = Deployment(folder, redis, zookeepers=3, nats=nats, coordinators=2, peers=4)
    try:
        deployment.start()
        faults = Faults(
            seed,
            Group(deployment.peers, most_down=4, longest=2.0),
            Group(deployment.coordinators, most_down=2, longest=1.5),
            Group(deployment.zookeepers, most_down=1, longest=2.0),
            Group(deployment.nats, most_down=1, longest=2.0),
        )
        with deployment.instance() as pyr:
            run(pyr, faults, deployment.store, deployment.queues, items=items, seconds=seconds)
    finally:
        deployment.stop()


def test_a_deployment_under_faults(tmp_path: Path, redis: RedisServer) -> None:
    on_a_deployment(tmp_path, redis, seed=soak_seed(), items=200_000, seconds=1, nats=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("nats", [1, 3])
def test_a_deployment_under_faults_for_long(tmp_path: Path, redis: RedisServer, nats: int) -> None:
    seconds = soak_seconds(120)
    on_a_deployment(tmp_path, redis, seed=soak_seed(), items=1_000_000, seconds=seconds, nats=nats)
