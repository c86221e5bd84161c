"""Large messages are not all in memory at once, on each kind of queues."""

from __future__ import annotations

import pytest

from pyrite.durable.queues.queues import Queues
from tests.durable.queues.places import Job, Place, bodies, body, commit_all, following

LONG = "x" * 1000


@pytest.fixture
def job(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> Job:
    for module in ("sqlite", "nats.sequential", "nats.concurrent"):
        monkeypatch.setattr(f"pyrite.durable.queues.{module}.MOST_READ", 1500)
    return Job(queues)


@pytest.mark.parametrize("is_staged", [False, True])
def test_reading_ends_with_the_message_that_reaches_the_limit(job: Job, is_staged: bool) -> None:
    job.begin()
    words = [job.word(f"{number}{LONG}") for number in range(5)]
    if is_staged:
        job.queues.stage(job.out, "1", words)
        words = []
    commit = following(job.queues.record(job.out), "1")
    job.queues.commit(job.out, commit, words, state=b"")
    home, position, read = job.queues.home(job.out), 0, []
    while came := job.queues.read(job.count, "words", home, position, limit=16):
        read.append([body(each)[0] for each in came])
        position = came[-1].sequence + 1
    assert read == [["0", "1"], ["2", "3"], ["4"]]
    job.queues.close_job(job.name)


def test_taking_ends_with_the_message_that_reaches_the_limit(job: Job, place: Place) -> None:
    job.begin_with([job.split(f"{number}{LONG}", server=0) for number in range(5)])
    seen: list[str] = []
    while len(seen) < 5:
        came = job.queues.take(job.map, owner=place.owner(), limit=16)
        assert len(came) <= 2
        if came:
            seen += bodies(came)
            commit_all(job, came, f"{len(seen)}", "out")
    assert sorted(each[0] for each in seen) == ["0", "1", "2", "3", "4"]
    job.queues.close_job(job.name)
