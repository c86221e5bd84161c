"""What only the queues in NATS do: servers that are not there, that are killed in the middle of
commits, and several deployments on one NATS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.queues.nats import NatsQueues
from pyrite.durable.queues.queues import Message, Outgoing, QueuesError
from tests.durable.queues.places import (
    Job,
    NatsPlace,
    bodies,
    commit_all,
    following,
    take,
)
from tests.nats import Killer, Nats
from tests.ports import free_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Nats]:
    """A server that a test may kill."""
    server = Nats(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def doomed(server: Nats) -> Iterator[NatsPlace]:
    place = NatsPlace([[server.url]])
    yield place
    place.close()


def test_commits_are_there_once_and_in_order_when_the_server_is_killed_again_and_again(
    server: Nats, doomed: NatsPlace
) -> None:
    job = Job(doomed.open()).begin()
    last, confirmed = job.queues.record(job.out), 0
    with Killer([server], 4) as killer:
        while not killer.is_over.is_set():
            words = [job.word(f"{confirmed}"), job.word(f"{confirmed}")]
            last = job.queues.commit(job.out, following(last, f"{confirmed}"), words, state=None)
            confirmed += 1
            killer.moved()
    assert job.words() == [str(n) for n in range(confirmed) for _ in range(2)]
    assert doomed.open().record(job.out) == last


def test_each_taken_message_has_its_output_once_when_the_server_is_killed_again_and_again(
    server: Nats, doomed: NatsPlace
) -> None:
    splits = [str(n) for n in range(120)]
    job = Job(doomed.open()).begin(*splits)
    number = 0
    with Killer([server], 3) as killer:
        while sum(job.held()):
            job.queues.wait([job.map], 1)
            for taken in job.queues.take(job.map, owner="me", limit=3):
                number += 1
                word = job.word(taken.message.body.decode())
                job.queues.commit_taken([taken], f"{number}", [word, word])
                killer.moved()
    assert sorted(job.words()) == sorted(splits * 2)


def test_staged_messages_are_published_once_when_the_server_is_killed(
    server: Nats, doomed: NatsPlace
) -> None:
    job = Job(doomed.open()).begin()
    staged = 0
    with Killer([server], 2) as killer:
        while not killer.is_over.is_set():
            job.queues.stage(job.out, "1", [job.word(f"{staged}"), job.word(f"{staged}")])
            staged += 1
            killer.moved()
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), [], state=None)
    assert job.words() == [str(n) for n in range(staged) for _ in range(2)]


def test_the_messages_of_a_process_that_was_killed_come_to_another(
    two_nats: list[Nats],
) -> None:
    place = NatsPlace([[two_nats[0].url]])
    job = Job(place.open()).begin("a", "b", "c")
    program = (
        "import sys; from pyrite.durable.queues.nats import NatsQueues\n"
        "from pyrite.durable.protocol.workflow import Part\n"
        "queues = NatsQueues([[sys.argv[1]]], cluster=sys.argv[2])\n"
        "print(len(queues.take(Part(sys.argv[3], 'map', 0), owner='x', limit=2)), flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, two_nats[0].url, place.cluster, job.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"2\n"
        process.kill()
    assert sorted(bodies(take(job, "me", 3))) == ["a", "b", "c"]
    job.queues.close_job(job.name)
    place.close()


def test_a_nats_that_is_not_there_is_named() -> None:
    url = f"nats://127.0.0.1:{free_port()}"
    with pytest.raises(QueuesError, match=rf"NATS at {url} does not answer.*nats-server runs"):
        NatsQueues([[url]], cluster="c", patience=0.3)


def test_a_nats_that_goes_away_is_waited_for_and_then_named(server: Nats) -> None:
    queues = NatsQueues([[server.url]], cluster="c", patience=0.5)
    job = Job(queues).begin("a")
    server.kill()
    with pytest.raises(QueuesError, match=rf"NATS at {server.url} does not answer"):
        queues.record(job.out)
    server.start()
    assert bodies(take(job, "me", 1)) == ["a"]
    queues.close()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Nats]:
    server = Nats(tmp_path, jetstream=False)
    server.start()
    yield server
    server.stop()


def test_a_nats_without_jetstream_is_a_clear_error(plain: Nats) -> None:
    queues = NatsQueues([[plain.url]], cluster="c", patience=0.5)
    with pytest.raises(QueuesError, match="runs without JetStream"):
        queues.jobs()
    queues.close()


def test_deployments_on_one_nats_do_not_see_each_other(two_nats: list[Nats]) -> None:
    places = [NatsPlace([[two_nats[0].url]]) for _ in range(2)]
    one, other = (place.open() for place in places)
    job = Job(one).begin("a")
    assert one.jobs() == [job.name]
    assert other.jobs() == []
    other.close_job(job.name)
    assert job.held() == (1, 0)
    one.close_job(job.name)
    for place in places:
        place.close()


def test_the_homes_of_parts_are_spread_over_the_servers(two_nats: list[Nats]) -> None:
    queues = NatsQueues([[server.url] for server in two_nats], cluster="c")
    job = Job(queues)
    parts = [job.count._replace(member=member) for member in range(20)]
    assert {queues.home(part) for part in parts} == {0, 1}
    queues.close()


def test_committed_messages_and_markers_are_deleted_in_the_end(two_nats: list[Nats]) -> None:
    place = NatsPlace([[two_nats[0].url]])
    queues = NatsQueues([[two_nats[0].url]], cluster=place.cluster)
    job = Job(queues).begin(*(str(n) for n in range(150)))
    taken = take(job, "me", 150)
    for number, one in enumerate(taken):
        assert queues.commit_taken([one], f"{number}", [])
    assert job.held() == (0, 0)
    stream = queues._jobs[job.name].streams[0]
    _, left = queues._loop.run_until_complete(stream.info("*.0.*"))
    assert len([name for name in left if name.startswith("q.")]) == 0
    assert not queues.commit_taken(taken[:1], "late", [job.word("no")])
    queues.close_job(job.name)
    queues.close()


def test_a_pointer_to_staged_messages_becomes_messages_of_a_concurrent_queue(
    two_nats: list[Nats],
) -> None:
    place = NatsPlace([[two_nats[0].url]])
    job = Job(place.open()).begin()
    splits = [job.split(str(n)) for n in range(1700)]
    job.queues.commit(job.out, following(job.queues.record(job.out), "1"), splits, state=None)
    found: list[str] = []
    while sum(job.held()):
        taken = take(job, "me", 100)
        found += bodies(taken)
        assert commit_all(job, taken, f"{len(found)}", "x")
    assert sorted(found) == sorted(str(n) for n in range(1700))
    job.queues.close_job(job.name)
    place.close()


def test_a_long_body_in_a_concurrent_queue_comes_whole_and_is_deleted(
    two_nats: list[Nats],
) -> None:
    place = NatsPlace([[two_nats[0].url]])
    job = Job(place.open())
    long = bytes(range(256)) * 20_000
    job.begin_with([Outgoing(job.map, Message("splits", long))])
    (taken,) = take(job, "me", 1)
    assert taken.message.body == long
    assert commit_all(job, [taken], "1", "x")
    assert job.held() == (0, 0)
    job.queues.close_job(job.name)
    place.close()
