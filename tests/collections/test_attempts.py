"""What attempts at tasks have written is committed as one step, or it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyrite.collections import redis_at
from pyrite.collections.redis import CollectionsUnavailable, RedisCollections
from pyrite.collections.redis.attempts import KEEP_SECONDS, Attempt
from pyrite.collections.redis.commits import KEEP, WrittenJob
from pyrite.collections.redis.maps import flat_entries
from pyrite.collections.redis.names import Kind
from pyrite.collections.stored.values import packed
from tests.collections.test_redis import cutting_replies
from tests.redis_server import RedisServer


@pytest.fixture
def stored(redis: RedisServer) -> Iterator[RedisCollections]:
    collections = redis_at(redis.url)
    assert collections is not None
    yield collections
    collections.close()


@pytest.fixture
def job(redis: RedisServer) -> Iterator[WrittenJob]:
    job = WrittenJob(redis.url, "j1")
    job.begin()
    yield job
    job.end()


def keys(redis: RedisServer) -> set[str]:
    with redis.client() as client:
        found: Any = client.keys()
        return {key.decode() for key in found}


def written(stored: RedisCollections, attempt: str, **lists: list[Any]) -> Attempt:
    made = Attempt(stored.server, "j1", "task", attempt)
    for name, items in lists.items():
        made.add("list", name, [packed(item) for item in items])
    made.flush()
    return made


def test_attempts_are_committed_and_the_others_removed(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    stored.list("l").append(0)
    good, other = written(stored, "1", l=[1, 2], new=[5]), written(stored, "3", l=[3], new=[6])
    lost = written(stored, "2", l=[9])
    good.add("map", "m", flat_entries([("a", 1)]))
    assert stored.list("l") == [0]
    assert lost.flush()
    job.commit([*good.flush(), *other.flush()])
    job.end()
    assert stored.list("l") == [0, 1, 2, 3]
    assert stored.list("new") == [5, 6]
    assert stored.map("m") == {"a": 1}
    assert keys(redis) == {"pyrite:list:l", "pyrite:list:new", "pyrite:map:m"}
    with redis.client() as client:
        assert [client.ttl(key) for key in ("pyrite:list:new", "pyrite:map:m")] == [-1, -1]


@pytest.mark.parametrize("kind", ["map", "list"])
def test_all_vertices_that_read_a_collection_read_one_copy_of_it(
    stored: RedisCollections, job: WrittenJob, kind: Kind
) -> None:
    stored.map("c").update({n: n for n in range(5)})
    stored.list("c").extend(range(5))
    first = job.copy(kind, "c")
    stored.map("c")[5] = 5
    stored.list("c").append(5)
    assert job.copy(kind, "c") == first
    assert len(list(first.read(stored.server, 0, 1))) == 5


def test_maps_are_merged_and_the_later_attempt_wins(
    stored: RedisCollections, job: WrittenJob
) -> None:
    stored.map("m").update({1: "old", 2: "old"})
    attempt = Attempt(stored.server, "j1", "task", "1")
    attempt.add("map", "m", flat_entries([(1.0, "new"), *((n, n) for n in range(3, 12_000))]))
    job.commit(attempt.flush())
    assert len(stored.map("m")) == 11_999
    assert [stored.map("m")[key] for key in (1, 2, 3)] == ["new", "old", 3]


def test_what_a_task_wrote_must_be_there_or_nothing_is_committed(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    attempts = [*written(stored, "1", l=[1]).flush(), *written(stored, "2", l=[2]).flush()]
    with redis.client() as client:
        client.delete(attempts[1].key)
    with pytest.raises(CollectionsUnavailable, match=r"the list 'l'.*written is gone"):
        job.commit(attempts)
    assert stored.list("l") == []


def test_a_target_that_is_something_else_lets_nothing_be_committed(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    with redis.client() as client:
        client.set("pyrite:list:z", "a string")
    with pytest.raises(CollectionsUnavailable, match="something that Pyrite has not written"):
        job.commit(written(stored, "1", a=[1], z=[1]).flush())
    assert stored.list("a") == []


def test_attempts_that_must_say_the_same_replace_each_other(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    said = []
    for number in "123":
        attempt = Attempt(stored.server, "j1", "task", number, must_repeat=True)
        attempt.add("list", "l", [packed(1), packed(2)])
        if number != "3":  # the third one stops in the middle
            said.append(attempt.flush())
        attempt.close()
    assert said[0] == said[1]
    job.commit(said[0])
    job.end()
    assert stored.list("l") == [1, 2]
    assert keys(redis) == {"pyrite:list:l"}


def test_an_attempt_that_runs_on_after_the_end_leaves_nothing(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    attempt = written(stored, "1", l=[1])
    job.end()
    attempt.add("list", "l", [packed(2)])
    with pytest.raises(CollectionsUnavailable, match="the job that it is for has ended"):
        attempt.flush()
    assert keys(redis) == set()


def test_everything_of_a_job_expires_unless_its_driver_lives(
    stored: RedisCollections, redis: RedisServer, job: WrittenJob
) -> None:
    stored.list("in").append(1)
    job.copy("list", "in")
    written(stored, "1", l=[1])
    of_job = keys(redis) - {"pyrite:list:in"}
    assert len(of_job) == 3
    with redis.client() as client:
        for key in of_job:
            assert 0 < int(client.ttl(key)) <= KEEP_SECONDS
            client.expire(key, 5)
        stored.server.run("a job", KEEP, [b"pyrite:job:j1"], KEEP_SECONDS)
        assert all(int(client.ttl(key)) > 5 for key in of_job)


@pytest.mark.parametrize(("kind", "shares"), [("list", 1), ("list", 3), ("map", 3)])
def test_a_copy_is_read_in_shares_and_does_not_change(
    stored: RedisCollections, job: WrittenJob, kind: Any, shares: int
) -> None:
    if kind == "list":
        stored.list("in").extend(range(25_000))
    else:
        stored.map("in").update({n: n for n in range(25_000)})
    copied = job.copy(kind, "in")
    stored.list("in").append("later")
    stored.map("in")["later"] = "later"
    read = [item for share in range(shares) for item in copied.read(stored.server, share, shares)]
    assert sorted(read) == [n if kind == "list" else (n, n) for n in range(25_000)]


def test_a_copy_of_nothing_is_empty_and_one_that_is_gone_is_named(
    stored: RedisCollections, job: WrittenJob
) -> None:
    assert list(job.copy("map", "none").read(stored.server, 0, 1)) == []
    stored.list("l").append(1)
    copied = job.copy("list", "l")
    job.end()
    with pytest.raises(CollectionsUnavailable, match="the copy of it that the job reads is gone"):
        list(copied.read(stored.server, 0, 1))


def test_a_commit_whose_reply_is_lost_is_found_to_be_done(
    stored: RedisCollections, redis: RedisServer
) -> None:
    with cutting_replies(redis.port) as (port, cut):
        job = WrittenJob(f"redis://127.0.0.1:{port}/0", "j1")
        job.begin()
        job._patient = job._server
        attempts = written(stored, "1", l=[1]).flush()
        cut.set()
        job.commit(attempts)
        job.end()
    assert stored.list("l") == [1]
    assert keys(redis) == {"pyrite:list:l"}
