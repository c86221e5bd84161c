"""The named maps and lists of a deployment: what a job adds changes them once, in one step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pyrite.collections.stored.unavailable import NameIsTaken
from pyrite.durable.collections.redis import DeploymentCollections
from pyrite.exchange.collected import Collected
from tests.redis_server import RedisServer

ADDED = [
    Collected("map", "m", {"a": 1, "b": 2}),
    Collected("list", "l", [1, 2]),
    Collected("map", "m", {"b": 3}),
    Collected("list", "l", [3]),
]


@pytest.fixture
def stored(redis: RedisServer) -> Iterator[DeploymentCollections]:
    with closing(DeploymentCollections(redis.url)) as collections:
        yield collections


def keys(redis: RedisServer) -> set[bytes]:
    with redis.client() as client:
        return {*client.keys()}


def test_a_job_is_applied_once(redis: RedisServer, stored: DeploymentCollections) -> None:
    stored.list("l").append(0)
    assert stored.apply("j", ADDED)
    assert not stored.apply("j", ADDED)
    assert stored.map("m") == {"a": 1, "b": 3}
    assert stored.list("l") == [0, 1, 2, 3]
    assert keys(redis) == {b"pyrite:map:m", b"pyrite:list:l", b"pyrite:job:j:applied"}


def test_another_peer_that_applies_the_job_meanwhile_wins(
    redis: RedisServer, stored: DeploymentCollections
) -> None:
    def added() -> Iterator[Collected]:
        yield from ADDED
        assert stored.apply("j", ADDED)

    assert not stored.apply("j", added())
    assert stored.list("l") == [1, 2, 3]
    assert len(keys(redis)) == 3


def test_nothing_changes_if_the_additions_cannot_be_read(
    redis: RedisServer, stored: DeploymentCollections
) -> None:
    def added() -> Iterator[Collected]:
        yield from ADDED
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        stored.apply("j", added())
    assert not keys(redis)


def test_large_additions_are_moved_in_one_step(stored: DeploymentCollections) -> None:
    lists = (Collected("list", "l", [*range(at, at + 4000)]) for at in range(0, 60_000, 4000))
    stored.list("l").append(-1)
    assert stored.apply("j", lists)
    assert stored.list("l").copy() == [*range(-1, 60_000)]


def test_a_name_that_something_else_has_is_named(
    redis: RedisServer, stored: DeploymentCollections
) -> None:
    with redis.client() as client:
        client.set("pyrite:map:m", "x")
    with pytest.raises(NameIsTaken, match=r"the map 'm' is in Redis.*use another name"):
        stored.apply("j", ADDED)
    assert keys(redis) == {b"pyrite:map:m"}


def test_a_job_that_adds_nothing_is_marked_too(stored: DeploymentCollections) -> None:
    assert stored.apply("j", [])
    assert not stored.apply("j", ADDED)
