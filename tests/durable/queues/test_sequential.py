"""Parts that read their queues in order, on each kind of queues."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.exactness.commits import Next, Record, Stored, after_no_answer
from pyrite.durable.protocol.states import ProtocolError
from pyrite.durable.queues.queues import Queues, QueuesError, Refused
from tests.durable.queues.places import Job, Place, body, following, take


def test_before_the_first_commit_the_record_is_empty(job: Job) -> None:
    first = job.queues.record(job.count)
    assert first == Stored(0, Record())
    assert job.queues.state(job.count, first) == b""


def test_a_commit_makes_record_state_and_messages_visible(job: Job, place: Place) -> None:
    commit = following(job.queues.record(job.out), "a1", finished=frozenset([3]), reports=("x",))
    stored = job.queues.commit(job.out, commit, [job.word("one"), job.word("two")], state=b"state")
    elsewhere = place.open()
    assert elsewhere.record(job.out) == stored == Stored(stored.sequence, commit.record)
    assert elsewhere.state(job.out, stored) == b"state"
    job.queues = elsewhere
    assert job.words() == ["one", "two"]


def test_a_commit_without_state_keeps_the_one_before(job: Job) -> None:
    one = job.queues.commit(
        job.count, following(job.queues.record(job.count), "1"), [], state=b"old"
    )
    two = job.queues.commit(job.count, following(one, "2"), [], state=None)
    assert job.queues.state(job.count, two) == b"old"
    three = job.queues.commit(job.count, following(two, "3"), [], state=b"new")
    assert job.queues.state(job.count, three) == b"new"
    four = job.queues.commit(job.count, following(three, "4"), [], state=b"")
    assert job.queues.state(job.count, four) == b""


def test_a_large_state_and_large_code_come_back(queues: Queues) -> None:
    job = Job(queues).begin(code=b"code" * 1_000_000)
    state = bytes(range(256)) * 12_000
    stored = queues.commit(job.count, following(queues.record(job.count), "1"), [], state=state)
    assert queues.state(job.count, stored) == state
    assert queues.code(job.name) == b"code" * 1_000_000
    queues.close_job(job.name)


def test_the_state_of_a_record_that_is_not_the_last_is_refused(job: Job) -> None:
    first = job.queues.record(job.count)
    job.queues.commit(job.count, following(first, "1"), [], state=b"x")
    with pytest.raises(Refused, match="has followed it"):
        job.queues.state(job.count, first)


def test_a_commit_of_an_old_epoch_is_refused_and_changes_nothing(job: Job) -> None:
    last = job.queues.commit(
        job.count, following(job.queues.record(job.count), "new", epoch=2), [], state=b"kept"
    )
    with pytest.raises(Refused, match="epoch"):
        job.queues.commit(job.count, following(last, "old"), [job.word("no")], state=b"no")
    assert job.queues.record(job.count) == last
    assert job.queues.state(job.count, last) == b"kept"
    assert job.words() == []


def test_a_commit_that_does_not_follow_the_last_record_is_refused(job: Job) -> None:
    first = job.queues.record(job.count)
    last = job.queues.commit(job.count, following(first, "1"), [job.word("yes")], state=None)
    with pytest.raises(Refused, match="not the last one"):
        job.queues.commit(job.count, following(first, "2"), [job.word("no")], state=None)
    assert job.queues.record(job.count) == last
    assert job.words() == ["yes"]


def test_ones_own_late_retry_is_refused_and_its_attempt_is_found_in_the_record(job: Job) -> None:
    commit = following(job.queues.record(job.count), "1")
    job.queues.commit(job.count, commit, [job.word("once")], state=None)
    with pytest.raises(Refused):
        job.queues.commit(job.count, commit, [job.word("once")], state=None)
    assert after_no_answer(job.queues.record(job.count), commit) is Next.DONE
    assert job.words() == ["once"]


def test_a_commit_that_contradicts_its_record_is_a_bug_and_changes_nothing(job: Job) -> None:
    last = job.queues.commit(
        job.count, following(job.queues.record(job.count), "1", is_over=True), [], state=None
    )
    with pytest.raises(ProtocolError):
        job.queues.commit(job.count, following(last, "2"), [job.word("no")], state=None)
    assert job.words() == []


def test_parts_have_records_of_their_own(job: Job) -> None:
    job.queues.commit(job.count, following(job.queues.record(job.count), "1"), [], state=b"mine")
    assert job.queues.record(job.other) == Stored(0, Record())


def test_a_queue_is_read_by_sequence_and_in_order(job: Job) -> None:
    words = [job.word(str(n)) for n in range(20)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), words, state=None)
    server = job.queues.home(job.out)
    head = job.queues.read(job.count, "words", server, 0, limit=7)
    assert [body(delivery) for delivery in head] == [str(n) for n in range(7)]
    tail = job.queues.read(job.count, "words", server, head[-1].sequence + 1, limit=100)
    assert [body(delivery) for delivery in tail] == [str(n) for n in range(7, 20)]
    again = job.queues.read(job.count, "words", server, head[3].sequence, limit=1)
    assert [one.sequence for one in again] == [head[3].sequence]
    sequences = [delivery.sequence for delivery in head + tail]
    assert sequences == sorted(set(sequences))
    assert job.queues.read(job.count, "words", server, sequences[-1] + 1, limit=1) == []


def test_messages_go_to_the_part_and_edge_that_they_name(job: Job) -> None:
    outgoing = [job.word("mine"), job.word("theirs", part=job.other)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), outgoing, state=None)
    assert job.words() == ["mine"]
    assert job.words(job.other) == ["theirs"]
    assert job.words(edge="side") == []


def test_what_positions_have_passed_goes_and_all_else_stays(job: Job) -> None:
    words = [job.word(str(n)) for n in range(5)] + [job.word("other", part=job.other)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), words, state=None)
    third = list(job.read())[2]
    passed = {("words", third.server): third.sequence}
    job.queues.commit(
        job.count, following(job.queues.record(job.count), "1", positions=passed), [], state=None
    )
    left = job.queues.read(job.count, "words", third.server, third.sequence, limit=9)
    assert [body(delivery) for delivery in left] == ["2", "3", "4"]
    assert job.words(job.other) == ["other"]
    assert job.held() == (3, 0)


def test_staged_messages_are_seen_with_the_commit_of_their_attempt_before_its_own(job: Job) -> None:
    job.queues.stage(job.out, "1", [job.word("staged 1"), job.word("staged 2")])
    job.queues.stage(job.out, "1", [job.word("staged 3"), job.word("other", part=job.other)])
    assert job.words() == []
    commit = following(job.queues.record(job.out), "1")
    job.queues.commit(job.out, commit, [job.word("last")], state=None)
    assert job.words() == ["staged 1", "staged 2", "staged 3", "last"]
    assert job.words(job.other) == ["other"]


def test_what_another_attempt_has_staged_is_never_seen(job: Job) -> None:
    job.queues.stage(job.out, "lost", [job.word("lost")])
    one = job.queues.commit(
        job.out, following(job.queues.record(job.out), "1"), [job.word("1")], state=None
    )
    job.queues.commit(job.out, following(one, "lost"), [], state=None)
    assert job.words() == ["1"]


def test_staged_messages_of_another_part_are_not_touched(job: Job) -> None:
    job.queues.stage(job.count, "same", [job.word("mine")])
    job.queues.commit(job.out, following(job.queues.record(job.out), "same"), [], state=None)
    assert job.words() == []
    job.queues.commit(job.count, following(job.queues.record(job.count), "same"), [], state=None)
    assert job.words() == ["mine"]


def test_a_refused_commit_publishes_nothing_that_was_staged(job: Job) -> None:
    first = job.queues.record(job.out)
    job.queues.commit(job.out, following(first, "winner"), [], state=None)
    job.queues.stage(job.out, "loser", [job.word("no")])
    with pytest.raises(Refused):
        job.queues.commit(job.out, following(first, "loser"), [], state=None)
    assert job.words() == []


def test_more_messages_than_fit_into_one_step_of_the_storage_are_still_one_commit(job: Job) -> None:
    words = [job.word(str(n)) for n in range(2500)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), words, state=None)
    assert job.words() == [str(n) for n in range(2500)]


def test_a_commit_writes_sentinels_to_all_servers(job: Job) -> None:
    sentinels = [job.sentinel("id", server=server) for server in range(job.queues.servers)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), sentinels, state=None)
    taken = take(job, "me", 3 + len(sentinels))
    ends = [one.server for one in taken if one.message.sentinel]
    assert sorted(ends) == list(range(job.queues.servers))


def test_only_sentinels_may_go_to_another_server_than_that_of_the_commit(job: Job) -> None:
    other = job.word("x", server=job.queues.servers - 1 - job.queues.home(job.out))
    commit = following(job.queues.record(job.out), "1")
    if other.server == job.queues.home(job.out):
        other = job.word("x", server=job.queues.servers)
    with pytest.raises(QueuesError, match="on server"):
        job.queues.commit(job.out, commit, [other], state=None)
    assert job.words() == []
