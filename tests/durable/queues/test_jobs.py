"""The life of a job's queues, on each kind of queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrite.durable.protocol.exactness.commits import Record, Stored
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Message, Outgoing, Queues, QueuesError, QueuesGone
from tests.durable.queues.places import WORKFLOW, Job, Place, following, take


def test_an_open_job_is_listed_and_has_its_code(job: Job, place: Place) -> None:
    elsewhere = place.open()
    assert job.name in elsewhere.jobs()
    assert elsewhere.code(job.name) == b"code"


def test_a_job_cannot_be_opened_twice(job: Job) -> None:
    with pytest.raises(QueuesError, match="has queues already"):
        job.begin()


def test_a_closed_job_is_gone_for_everybody(job: Job, place: Place) -> None:
    elsewhere = place.open()
    owner = place.owner()
    (taken,) = take(job, owner, 1)
    job.queues.close_job(job.name)
    job.queues.close_job(job.name)
    assert job.name not in elsewhere.jobs()
    for queues in elsewhere, job.queues:
        with pytest.raises(QueuesGone, match="has ended"):
            queues.record(job.count)
        with pytest.raises(QueuesGone):
            queues.code(job.name)
        with pytest.raises(QueuesGone):
            queues.take(job.map, owner=owner, limit=1)
        with pytest.raises(QueuesGone):
            queues.commit_taken([taken], "1", [job.word("x")])
        with pytest.raises(QueuesGone):
            queues.commit(job.count, following(Stored(0, Record()), "1"), [], state=None)
        with pytest.raises(QueuesGone):
            queues.read(job.count, "words", 0, 0, limit=1)
        with pytest.raises(QueuesGone):
            queues.stage(job.count, "1", [job.word("x")])
        with pytest.raises(QueuesGone):
            queues.counts(job.map)


def test_a_job_that_was_closed_can_be_opened_anew(job: Job) -> None:
    (taken,) = take(job, "x", 1)
    job.queues.commit_taken([taken], "1", [job.word("old")])
    job.queues.close_job(job.name)
    job.begin("new")
    assert job.words() == []
    assert job.held() == (1, 0)
    assert job.queues.record(job.count) == Stored(0, Record())


def test_opening_that_was_interrupted_has_not_begun_and_can_be_removed(
    queues: Queues, place: Place
) -> None:
    job = Job(queues)

    def first() -> Iterator[Outgoing]:
        for n in range(600):
            yield job.split(str(n))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        job.begin_with(first())
    with pytest.raises(QueuesGone):
        place.open().take(job.map, owner="x", limit=1)
    queues.close_job(job.name)
    assert job.name not in queues.jobs()
    job.begin("again")
    assert job.held() == (1, 0)
    queues.close_job(job.name)


def test_jobs_do_not_touch_each_other(job: Job, queues: Queues) -> None:
    other = Job(queues).begin("x")
    queues.close_job(other.name)
    assert job.held() == (3, 0)
    assert job.name in queues.jobs()


def test_a_message_that_is_too_long_is_refused_with_its_size(job: Job) -> None:
    long = Outgoing(job.count, Message("words", b"x" * (job.queues.most_bytes + 1)))
    commit = following(job.queues.record(job.out), "1")
    for call in (
        lambda: job.queues.commit(job.out, commit, [long], state=None),
        lambda: job.queues.stage(job.out, "1", [long]),
    ):
        with pytest.raises(QueuesError, match=r"'words' to part 0 of task 'count'.* bytes"):
            call()
    assert job.words() == []


def test_a_message_of_the_longest_size_comes_whole(job: Job) -> None:
    body = b"x" * job.queues.most_bytes
    longest = Outgoing(job.count, Message("words", body))
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), [longest], state=None)
    (came,) = job.read()
    assert came.message.body == body


def test_an_unknown_part_or_edge_is_named(job: Job) -> None:
    with pytest.raises(QueuesError, match="part 7 of task 'count'"):
        job.queues.record(Part(job.name, "count", 7))
    with pytest.raises(QueuesError, match="no inbound edge 'splits'"):
        job.queues.read(job.count, "splits", 0, 0, limit=1)
    with pytest.raises(QueuesError, match="not concurrent"):
        job.queues.take(job.count, owner="x", limit=1)


def test_a_part_has_always_the_same_home(job: Job, place: Place) -> None:
    elsewhere = place.open()
    for part in WORKFLOW.parts_of(job.name):
        assert job.queues.home(part) == elsewhere.home(part) < job.queues.servers


def test_the_queues_of_a_job_have_lengths(job: Job, place: Place) -> None:
    (taken,) = take(job, place.owner(), 1)
    job.queues.commit_taken([taken], "1", [job.word("x"), job.word("y", part=job.other)])
    held = take(job, place.owner(), 1)
    found = {length.edges: length for length in job.queues.lengths(job.name)}
    assert [length.task for length in found.values()] == ["map", "count", "count", "out"]
    assert found["splits", "more splits"].messages == 2
    assert found["splits", "more splits"].in_flight == len(held) == 1
    assert found["words",].messages == 2
    assert found["side",].messages == found["counts",].messages == 0


def test_a_closed_job_has_no_lengths(job: Job) -> None:
    job.queues.close_job(job.name)
    with pytest.raises(QueuesGone):
        job.queues.lengths(job.name)
