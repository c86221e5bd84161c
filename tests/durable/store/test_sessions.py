"""Ephemeral nodes and elections, in all stores."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest

from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.election import Candidate, before
from pyrite.durable.store.store import SessionLost, Store, StoreError
from tests.durable.store.places import Place
from tests.durable.store.processes import Process, stand_and_lead


def test_an_ephemeral_node_is_not_created_twice(store: Store, other: Store) -> None:
    store.create_ephemeral("/pulse/p", "1")
    with pytest.raises(StoreError, match="the node /pulse/p is there already"):
        other.create_ephemeral("/pulse/p", "2")
    with pytest.raises(StoreError, match="the node /pulse/p is there already"):
        store.create_ephemeral("/pulse/p", "2")
    assert other.get("/pulse/p") == "1"


def test_nothing_is_below_an_ephemeral_node(store: Store) -> None:
    store.create_ephemeral("/pulse/p")
    with pytest.raises(StoreError, match="/pulse/p, which is ephemeral"):
        store.create("/pulse/p/below")


def test_the_numbers_of_proposals_rise(place: Place) -> None:
    names = []
    for _ in range(3):
        store = place.open()
        names += [store.stand("/election", "me") for _ in range(2)]
        store.close()
    assert names == sorted(set(names))


def test_who_stands_first_leads_and_then_the_next(place: Place) -> None:
    stores = [place.open() for _ in range(3)]
    one, two, three = [Candidate(store, "name") for store in stores]
    assert [one.leads(), two.leads(), three.leads()] == [True, False, False]
    stores[0].close()
    assert two.wait_to_lead(10)
    assert not three.leads()
    stores[1].close()
    assert three.wait_to_lead(10)


def test_a_candidate_watches_only_the_one_before_it(place: Place) -> None:
    stores = [place.open() for _ in range(3)]
    candidates = [Candidate(store) for store in stores]
    assert [candidate.leads() for candidate in candidates] == [True, False, False]
    stores[0].close()
    assert stores[1].changed(10) == f"{paths.ELECTION}/{candidates[0].name}"
    assert stores[2].changed(0.2) is None
    assert candidates[2].watched == f"{paths.ELECTION}/{candidates[1].name}"


def test_the_death_of_one_in_the_middle_makes_nobody_lead(place: Place) -> None:
    stores = [place.open() for _ in range(3)]
    candidates = [Candidate(store) for store in stores]
    assert not candidates[2].leads()
    stores[1].close()
    assert not candidates[2].wait_to_lead(0.3)
    assert candidates[2].watched == f"{paths.ELECTION}/{candidates[0].name}"


def test_who_waits_to_lead_can_be_woken(store: Store, other: Store) -> None:
    Candidate(store)
    second = Candidate(other)
    waker = threading.Timer(0.05, other.wake)
    waker.start()
    assert not second.wait_to_lead()
    waker.join()


def test_a_killed_leader_is_followed_by_the_next_one(place: Place) -> None:
    with ExitStack() as stack:
        one = stack.enter_context(Process(place, stand_and_lead))
        names = [one.heard()]
        assert one.heard() == "leads"
        two = stack.enter_context(Process(place, stand_and_lead))
        names.append(two.heard())
        one.kill()
        killed = time.monotonic()
        assert two.heard() == "leads"
        assert time.monotonic() - killed < place.session + 1
    assert names == sorted(names)


def test_a_candidate_whose_proposal_is_gone_has_lost_its_session() -> None:
    with pytest.raises(SessionLost, match="the proposal a-2 to lead is gone"):
        before("a-2", ["a-1"])
