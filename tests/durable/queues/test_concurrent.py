"""Parts whose messages any number of peers take, on each kind of queues."""

from __future__ import annotations

import pytest

from pyrite.durable.queues.queues import Queues
from tests.durable.queues.places import Job, Place, bodies, commit_all, take


def test_each_message_is_taken_once(job: Job, place: Place) -> None:
    first = take(job, place.owner(), 2)
    job.queues = place.open()
    second = take(job, place.owner(), 1)
    assert sorted(bodies(first + second)) == ["a", "b", "c"]
    assert [delivery.tries for delivery in first + second] == [0, 0, 0]
    assert job.queues.take(job.map, owner=place.owner(), limit=9) == []


def test_messages_have_their_edge_and_sentinels_come_whole(queues: Queues, place: Place) -> None:
    job = Job(queues)
    first = [job.split("x", "more splits"), job.sentinel("id", server=0), job.sentinel(server=0)]
    job.begin_with(first)
    came = take(job, place.owner(), 3)
    by_server_0 = [one.message for one in came if one.server == 0 and one.message.sentinel]
    assert by_server_0 == [out.message for out in first[1:]]
    assert first[0].message in [one.message for one in came]
    queues.close_job(job.name)


def test_a_commit_makes_the_output_visible_and_the_message_is_gone(job: Job, place: Place) -> None:
    (taken,) = take(job, place.owner(), 1)
    assert job.queues.commit_taken([taken], "1", [job.word("x"), job.word("y")])
    assert job.words() == ["x", "y"]
    assert job.held() == (2, 0)


def test_several_messages_are_committed_in_one_step(job: Job, place: Place) -> None:
    taken = take(job, place.owner(), 3)
    assert commit_all(job, taken, "1", "out")
    assert job.held() == (0, 0)
    assert job.queues.drop_done(taken) == []


def test_a_second_commit_of_a_message_is_refused_and_stores_nothing(job: Job, place: Place) -> None:
    (taken,) = take(job, place.owner(), 1)
    assert job.queues.commit_taken([taken], "1", [job.word("first")])
    assert not job.queues.commit_taken([taken], "2", [job.word("second")])
    assert job.words() == ["first"]


def test_a_repeated_commit_is_true_and_stores_nothing_twice(job: Job, place: Place) -> None:
    (taken,) = take(job, place.owner(), 1)
    assert job.queues.commit_taken([taken], "1", [job.word("once")])
    assert place.open().commit_taken([taken], "1", [job.word("once")])
    assert job.words() == ["once"]


def test_a_commit_is_refused_if_one_of_its_messages_is_done(queues: Queues, place: Place) -> None:
    job = Job(queues)
    job.begin_with([job.split("a", server=0), job.split("b", server=0)])
    one, two = take(job, place.owner(), 2)
    assert queues.commit_taken([two], "1", [])
    assert not queues.commit_taken([one, two], "2", [job.word("no")])
    assert queues.drop_done([one, two]) == [one]
    assert job.held() == (0, 1)
    assert queues.commit_taken([one], "3", [job.word("yes")])
    assert job.words() == ["yes"]
    queues.close_job(job.name)


def test_what_is_given_back_comes_again_and_counts_its_tries(job: Job, place: Place) -> None:
    owner = place.owner()
    taken = take(job, owner, 3)
    job.queues.give_back(taken[:1])
    (again,) = take(job, owner, 1)
    assert (again.message, again.tries) == (taken[0].message, 1)
    assert job.held() == (0, 3)


def test_what_is_given_back_for_later_is_counted_and_comes_later(job: Job, place: Place) -> None:
    taken = take(job, place.owner(), 3)
    job.queues.give_back(taken, after=0.3)
    assert job.queues.take(job.map, owner=place.owner(), limit=3) == []
    assert sum(job.held()) == 3
    assert sorted(bodies(take(job, place.owner(), 3))) == ["a", "b", "c"]


def test_who_gave_a_message_back_cannot_give_it_back_again(job: Job, place: Place) -> None:
    taken = take(job, place.owner(), 3)
    job.queues.give_back(taken)
    take(job, place.owner(), 3)
    job.queues.give_back(taken)
    assert job.held() == (0, 3)


def test_the_messages_of_an_owner_that_died_come_to_another(job: Job, place: Place) -> None:
    doomed = place.owner()
    queues, job.queues = job.queues, place.open()
    lost = take(job, doomed, 3)
    job.queues = queues
    assert job.queues.take(job.map, owner=place.owner(), limit=3) == []
    place.let_die(doomed)
    found = take(job, place.owner(), 3)
    assert sorted(bodies(found)) == sorted(bodies(lost))
    assert [delivery.tries for delivery in found] == [1, 1, 1]
    assert job.held() == (0, 3)


def test_a_zombie_cannot_commit_what_another_has_committed(job: Job, place: Place) -> None:
    zombie = place.owner()
    lost = take(job, zombie, 3)
    place.let_die(zombie)
    found = take(job, place.owner(), 3)
    assert commit_all(job, found, "heir", "heir")
    assert not commit_all(job, lost, "zombie", "zombie")
    assert set(job.words()) == {"heir"}
    assert job.held() == (0, 0)


def test_an_heir_cannot_commit_what_a_zombie_has_committed(job: Job, place: Place) -> None:
    zombie = place.owner()
    lost = take(job, zombie, 3)
    place.let_die(zombie)
    found = take(job, place.owner(), 3)
    assert commit_all(job, lost, "zombie", "zombie")
    assert job.queues.drop_done(found) == []
    assert not commit_all(job, found, "heir", "heir")
    assert set(job.words()) == {"zombie"}
    assert job.held() == (0, 0)


def test_an_owner_that_lives_keeps_its_messages(job: Job, place: Place) -> None:
    owner = place.owner()
    taken = take(job, owner, 3)
    elsewhere = place.open()
    for _ in range(place.keeps):
        job.queues.keep(taken)
        elsewhere.wait([job.map], 0.2)
        assert elsewhere.take(job.map, owner=place.owner(), limit=3) == []
    assert job.held() == (0, 3)


def test_counts_have_the_last_sequence(job: Job, place: Place) -> None:
    taken = take(job, place.owner(), 3)
    assert all(job.queues.counts(job.map)[one.server].last >= one.sequence for one in taken)
    commit_all(job, taken, "1", "out")
    assert all(job.queues.counts(job.map)[one.server].last > one.sequence for one in taken)


def test_a_requeue_is_a_commit_with_a_new_sequence(queues: Queues, place: Place) -> None:
    job = Job(queues)
    job.begin_with([job.sentinel("leader", server=queues.servers - 1)])
    (old,) = take(job, place.owner(), 1)
    queues.commit_taken([old], "1", [job.sentinel("leader", server=old.server)])
    assert job.held() == (1, 0)
    (new,) = take(job, place.owner(), 1)
    assert (new.server, new.message) == (old.server, old.message)
    assert new.sequence > old.sequence
    queues.close_job(job.name)


def test_wait_returns_when_a_message_has_come(job: Job, place: Place) -> None:
    taken = take(job, place.owner(), 3)
    elsewhere = place.open()
    assert elsewhere.take(job.map, owner=place.owner(), limit=1) == []
    job.queues.give_back(taken)
    elsewhere.wait([job.map, job.count], 60)
    assert elsewhere.take(job.map, owner=place.owner(), limit=1)


def test_wait_returns_after_the_time_given(job: Job) -> None:
    job.queues.wait([job.count, job.other], 0.05)
    assert job.words() == []


@pytest.mark.parametrize("count", [0, 2000])
def test_a_commit_can_have_any_number_of_outgoing_messages(
    job: Job, place: Place, count: int
) -> None:
    (taken,) = take(job, place.owner(), 1)
    assert job.queues.commit_taken([taken], "1", [job.word(str(n)) for n in range(count)])
    assert job.words() == [str(n) for n in range(count)]
