"""Sources that read named maps and lists on members: each entry and each item once, as they were
before any processor of the job began, whoever writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from tests.cluster.test_light_jobs import run, straight
from tests.redis_server import RedisServer

ROUNDS = 15
COUNT = 5_000


@pytest.fixture(scope="module", params=["memory", "redis"])
def trio(request: pytest.FixtureRequest, shared_redis: RedisServer) -> Iterator[LocalCluster]:
    place = "memory" if request.param == "memory" else shared_redis.url
    with LocalCluster(members=3, collections=place) as cluster:
        cluster.wait_until_complete()
        yield cluster


@pytest.fixture
def reader(trio: LocalCluster) -> Iterator[Client]:
    with trio.client() as client:
        yield client


def test_a_job_that_appends_to_the_list_that_it_reads_doubles_it(reader: Client) -> None:
    for _ in range(ROUNDS):
        numbers = reader.list("self-append")
        numbers.clear()
        numbers.extend(range(COUNT))
        run(reader, straight(p.read_list("self-append"), p.write_list("self-append")))
        assert sorted(numbers) == sorted([*range(COUNT), *range(COUNT)])


def test_a_job_that_adds_to_the_map_that_it_reads_does_not_read_what_it_adds(
    reader: Client,
) -> None:
    negated = p.map(lambda pair: (-pair[0] - 1, pair[1]))
    for _ in range(ROUNDS):
        numbers = reader.map("self-update")
        numbers.clear()
        numbers.update({n: n for n in range(COUNT)})
        dag = straight(
            p.read_map("self-update"), negated, p.write_map("self-update"), distributed=False
        )
        run(reader, dag)
        added = {-n - 1: n for n in range(COUNT)}
        assert numbers.copy() == {n: n for n in range(COUNT)} | added


def test_a_list_is_read_as_a_whole_while_another_inserts_and_pops(reader: Client) -> None:
    numbers = reader.list("shifting")
    numbers.clear()
    numbers.extend(range(COUNT))
    stop = threading.Event()

    def shift() -> None:
        while not stop.is_set():
            numbers.insert(0, -1)
            numbers.pop(0)

    shifting = threading.Thread(target=shift)
    shifting.start()
    try:
        for _ in range(ROUNDS):
            assert sorted(emitted(reader, p.read_list("shifting"))) in (
                [*range(COUNT)],
                [-1, *range(COUNT)],
            )
    finally:
        stop.set()
        shifting.join()


def test_each_entry_of_a_map_is_read_once_while_another_adds_and_removes(reader: Client) -> None:
    numbers = reader.map("growing")
    numbers.clear()
    numbers.update({n: n for n in range(COUNT)})
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            numbers.update({-n: n for n in range(1, 2_000)})
            for n in range(1, 50):
                del numbers[-n]

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(ROUNDS):
            keys = [key for key, _ in emitted(reader, p.read_map("growing"))]
            assert len(keys) == len(set(keys))
            assert set(range(COUNT)) <= set(keys)
    finally:
        stop.set()
        changing.join()


def emitted(client: Client, source: Any) -> list[Any]:
    out = client.list("emitted")
    out.clear()
    run(client, straight(source, p.write_list("emitted")))
    return out.copy()
