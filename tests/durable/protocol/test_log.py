"""Entries of the log, the transactions that they become, and garbage."""

from __future__ import annotations

from pyrite.durable.protocol.coordinator.events import Born, Death, Offer
from pyrite.durable.protocol.coordinator.log import Entry, after, repeated, transactions
from pyrite.durable.protocol.coordinator.offers import MOST_GARBAGE, wish
from pyrite.durable.protocol.tree.nodes import TOUCHED
from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import ONE
from tests.durable.protocol.world import World

ENTRY = Entry(7, ("ack", "p1", 3), (Put("/a", "1"), Delete("/b"), CloseQueues("j")))


def test_an_entry_comes_first_then_its_writes_then_the_checkpoint() -> None:
    first, *writes, last = transactions(ENTRY, most=2)
    assert first == (Create("/coordinator/ack-log/log-entry-0000000007", ENTRY.text()),)
    assert writes == [(Put("/a", "1"), Delete("/b")), (CloseQueues("j"),)]
    assert last == (Put("/coordinator/checkpoint", "7"),)


def test_a_replay_repeats_all_but_the_entry() -> None:
    assert list(repeated(ENTRY)) == list(transactions(ENTRY))[1:]


def test_entries_after_the_checkpoint_are_replayed_in_order() -> None:
    entries = [Entry(number, ("offer",), ()) for number in (9, 7, 10, 8)]
    assert [entry.number for entry in after(7, entries)] == [8, 9, 10]


def test_an_entry_can_be_written_and_read() -> None:
    assert Entry.read(ENTRY.text()) == ENTRY


def test_an_event_that_changes_nothing_makes_no_entry() -> None:
    desk = Desk("p0")
    assert desk.handle(Born("p0")).entry is None
    assert desk.cluster.entry == 1


def test_earlier_states_of_peers_are_kept_until_they_are_collected() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    world.finish()
    assert len([path for path in world.nodes if path.startswith("/peer-state/p0/")]) == 5
    world.collect()
    world.coordinate()
    assert len([path for path in world.nodes if path.startswith("/peer-state/p0/")]) == 1
    world.check_view()


def test_garbage_is_collected_when_there_is_much_of_it() -> None:
    desk = Desk(*(f"p{number}" for number in range(MOST_GARBAGE)))
    for number in range(MOST_GARBAGE // 2):
        assert wish(desk.cluster) is None
        desk.handle(Death(f"p{number}"))
    collect = wish(desk.cluster)
    assert collect is not None
    desk.handle(collect)
    assert len(desk.cluster.peers) == MOST_GARBAGE // 2
    assert wish(desk.cluster) is None


def test_a_replay_leaves_what_a_peer_has_set_and_what_it_asks_for() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    world.coordinate()
    world.look("p0")
    world.act("p0")
    assert world.nodes["/ack/1"] == TOUCHED
    world.check_replay(most=100)


def test_a_peer_that_sees_its_payload_finds_the_nodes_for_its_requests() -> None:
    desk = Desk("p0", job=ONE)
    entry = desk.handle(Offer()).entry
    assert entry is not None
    paths = [write.path for write in entry.writes]
    requests = [paths.index(path) for path in ("/ack/1", "/seal/1", "/completion/1")]
    assert max(requests) < paths.index("/payload/p0")
