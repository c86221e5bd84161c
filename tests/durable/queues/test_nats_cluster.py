"""Queues in a NATS cluster of three servers, with each stream on all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrite.durable.queues.queues import Refused
from tests.durable.queues.places import Job, NatsPlace, commit_all, following, take
from tests.nats import Killer, Nats, cluster


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Nats]]:
    members = cluster(tmp_path_factory.mktemp("cluster"))
    for member in members:
        member.start()
    yield members
    for member in members:
        member.stop()


@pytest.fixture
def replicated(members: list[Nats]) -> Iterator[Job]:
    place = NatsPlace([[member.url for member in members]], patience=30)
    job = Job(place.open()).begin("a", "b", "c")
    yield job
    job.queues.close_job(job.name)
    place.close()


def test_a_commit_of_a_part_is_fenced(replicated: Job) -> None:
    job = replicated
    first = job.queues.record(job.out)
    last = job.queues.commit(job.out, following(first, "1"), [job.word("x")], state=b"s")
    with pytest.raises(Refused):
        job.queues.commit(job.out, following(first, "2"), [job.word("no")], state=None)
    assert job.queues.state(job.out, last) == b"s"
    read_all(job, ["x"])


def test_a_taken_message_is_committed_once(replicated: Job) -> None:
    job = replicated
    taken = take(job, "me", 3)
    assert commit_all(job, taken, "1", "y")
    assert not commit_all(job, taken, "2", "no")
    assert job.held() == (0, 0)
    read_all(job, ["y"])


@pytest.mark.soak
def test_members_that_are_killed_one_after_the_other_lose_and_double_nothing(
    members: list[Nats], replicated: Job
) -> None:
    job = replicated
    last, confirmed = job.queues.record(job.out), 0
    with Killer(members, 3) as killer:
        while not killer.is_over.is_set():
            words = [job.word(f"{confirmed}"), job.word(f"{confirmed}")]
            last = job.queues.commit(job.out, following(last, f"{confirmed}"), words, state=None)
            confirmed += 1
            killer.moved()
    read_all(job, [str(n) for n in range(confirmed) for _ in range(2)])


def read_all(job: Job, expected: list[str]) -> None:
    """A member that was started again may answer reads before it has caught up."""
    while len(words := job.words()) < len(expected):
        assert words == expected[: len(words)]
        job.queues.wait([job.count], 0.1)
    assert words == expected
