"""The randomized fault run: processes and servers are killed and stopped all the time, and every
input is counted exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import pyrite
from pyrite import Instance, JobConfig
from pyrite.durable.queues.queues import Queues
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.sqlite import SqliteStore
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


def in_a_folder(folder: Path, *, seed: int, items: int, seconds: float) -> None:
    print(f"PYRITE_SOAK_SEED={seed}")
    with pyrite.instance(durable=folder, peers=4) as pyr:
        children = [Child(pyr, number) for number in range(5)]
        faults = Faults(seed, Group(children, most_down=5, longest=1.0), pause=1.2)
        run(
            pyr,
            faults,
            lambda: SqliteStore(folder),
            lambda: SqliteQueues(folder),
            items=items,
            seconds=seconds,
        )


class Child:
    """A process of an instance, which starts another when it dies."""

    def __init__(self, pyr: Instance, number: int) -> None:
        self._pyr = pyr
        self._number = number
        self._stopped: int | None = None

    def start(self) -> None: ...

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def suspend(self) -> None:
        self._stopped = self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._stopped is not None:
            with suppress(ProcessLookupError):
                os.kill(self._stopped, signal.SIGCONT)

    def _signal(self, number: int) -> int | None:
        pids = [pid for _, pid in self._pyr.processes()]
        if self._number >= len(pids):
            return None
        with suppress(ProcessLookupError):
            os.kill(pids[self._number], number)
        return pids[self._number]


OWNER = """
import sys, pyrite
from tests.durable.counting import counting
folder, items, name = sys.argv[1:]
with pyrite.instance(durable=folder, peers=3) as pyr:
    pyr.new_durable_job(counting(int(items), name)).execute()
    print("submitted", flush=True)
    for job in pyr.jobs():
        job.result()
"""


def all_at_once(folder: Path, *, seed: int, items: int, times: int) -> None:
    """An instance submits a job, and dies with all its processes; so does the next one."""
    print(f"PYRITE_SOAK_SEED={seed}")
    rng = random.Random(seed)
    for number in range(times):
        command = [sys.executable, "-c", OWNER, str(folder), str(items), f"counts{number}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"submitted\n"
            with suppress(subprocess.TimeoutExpired):
                owner.wait(rng.uniform(0.2, 3.0))
            owner.kill()
    with pyrite.instance(durable=folder, peers=3) as pyr:
        assert len(pyr.jobs()) == times
        for number, job in enumerate(pyr.jobs()):
            job.result(PATIENCE)
            assert pyr.map(f"counts{times - 1 - number}") == expected(items)
        nothing_is_left(lambda: SqliteStore(folder), lambda: SqliteQueues(folder))


def test_a_folder_under_faults(tmp_path: Path) -> None:
    in_a_folder(tmp_path, seed=soak_seed(), items=200_000, seconds=1)


def test_a_folder_is_opened_again_after_the_death_of_everything_twice(tmp_path: Path) -> None:
    all_at_once(tmp_path / "folder", seed=soak_seed(), items=40_000, times=2)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_folder_under_faults_for_long(tmp_path: Path) -> None:
    in_a_folder(tmp_path, seed=soak_seed(), items=1_000_000, seconds=soak_seconds(120))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_folders_are_opened_again_after_the_death_of_everything_for_long(tmp_path: Path) -> None:
    end = time.monotonic() + soak_seconds(120)
    seeds = count(soak_seed())
    while time.monotonic() < end:
        seed = next(seeds)
        all_at_once(tmp_path / str(seed), seed=seed, items=300_000, times=5)


def test_a_deployment_under_faults(tmp_path: Path, redis: RedisServer) -> None:
    on_a_deployment(tmp_path, redis, seed=soak_seed(), items=200_000, seconds=1, nats=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("nats", [1, 3])
def test_a_deployment_under_faults_for_long(tmp_path: Path, redis: RedisServer, nats: int) -> None:
    seconds = soak_seconds(120)
    on_a_deployment(tmp_path, redis, seed=soak_seed(), items=1_000_000, seconds=seconds, nats=nats)
