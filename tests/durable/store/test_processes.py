"""Stores that several processes use at once, and that die."""

from __future__ import annotations

import time
from contextlib import ExitStack

from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.store import Store
from tests.durable.store.places import Place, fired
from tests.durable.store.processes import (
    Process,
    answer_changes,
    create_all,
    hold_ephemeral,
    lead_in_turn,
    set_often,
    write_for_ever,
)


def test_of_four_processes_exactly_one_creates_each_node(place: Place, store: Store) -> None:
    with ExitStack() as stack:
        four = [Process(place, create_all, 100) for _ in range(4)]
        for process in four:
            stack.enter_context(process)
        for process in four:
            process.go()
        won = [number for process in four for number in process.heard()]
    assert sorted(won) == list(range(100))
    assert len(store.children("/race")) == 100


def test_a_leader_writes_nothing_after_another_has_raised_the_epoch(
    place: Place, store: Store
) -> None:
    """Each transaction sets /led to its epoch: a late one would set it back."""
    with ExitStack() as stack:
        two = [Process(place, lead_in_turn, 5, 10) for _ in range(2)]
        for process in two:
            stack.enter_context(process)
        store.create("/led", "0")
        for process in two:
            process.go()
        seen = [0]
        while store.watch(paths.EPOCH) != "10":
            seen.append(int(store.get("/led") or "0"))
            assert store.changed(10) is not None
        said = [line for process in two for line in iter(process.heard, None)]
    assert seen == sorted(seen)
    assert sorted(epoch for epoch, _ in said) == list(range(1, 11))
    written = {f"{epoch}-{number}" for epoch, count in said for number in range(count)}
    assert set(store.children("/led")) == written


def test_a_leader_that_is_killed_leaves_whole_transactions(place: Place, store: Store) -> None:
    with Process(place, write_for_ever) as process:
        assert process.heard() == "writes"
        process.kill()
    store.raise_epoch()  # what was sent has been done or refused
    found = {store.get(f"/whole/{each}") for each in range(5)}
    assert len(found) == 1
    assert store.children("/gone") == list(found)


def test_a_watcher_ends_with_the_last_value(place: Place, store: Store) -> None:
    count = 200
    store.create("/value", "")
    with Process(place, set_often, "/value", count) as writer:
        writer.go()
        while store.watch("/value") != str(count - 1):
            assert store.changed(10) == "/value"


def test_two_processes_answer_each_other_and_no_change_is_missed(
    place: Place, store: Store
) -> None:
    count = 100
    store.create("/ask", "")
    store.create("/answer", "")
    with Process(place, answer_changes, count):
        for number in map(str, range(count)):
            store.set("/ask", number)
            while store.watch("/answer") != number:
                assert store.changed(10) is not None


def test_an_ephemeral_node_goes_when_its_process_is_killed(place: Place, store: Store) -> None:
    with Process(place, hold_ephemeral, "/pulse/p") as process:
        assert process.heard() == "ready"
        assert store.watch("/pulse/p") == "here"
        assert store.watch_children("/pulse") == ["p"]
        assert store.changed(place.session * 1.2) is None, "it lives as long as its process"
        process.kill()
        killed = time.monotonic()
        assert set(fired(store)) == {"/pulse/p", "/pulse"}
        assert time.monotonic() - killed < place.session + 1
    assert store.get("/pulse/p") is None
    assert store.children("/pulse") == []
    store.create_ephemeral("/pulse/p", "again")
