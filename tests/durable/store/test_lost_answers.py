"""What a store in ZooKeeper does when the connection is lost in the middle of a call: the call ends
as if nothing had happened, whether or not the server has done what was asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import Create, Delete, Put
from pyrite.durable.store.election import Candidate
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import EpochIsOver, SessionLost, Store, StoreError
from tests.durable.store.cable import Cable, Lost
from tests.durable.store.conftest import SESSION, cluster
from tests.durable.store.places import Place, fired
from tests.zookeeper import ZooKeeper


@pytest.fixture(params=["request", "answer"])
def lost(request: pytest.FixtureRequest) -> Lost:
    found: Lost = request.param
    return found


@pytest.fixture
def cable(zookeeper: ZooKeeper) -> Iterator[Cable]:
    cable = Cable(zookeeper.port)
    yield cable
    cable.close()


@pytest.fixture
def place(zookeeper: ZooKeeper) -> Iterator[Place]:
    place = cluster(zookeeper.address)
    yield place
    place.close()


@pytest.fixture
def store(place: Place, cable: Cable, zookeeper: ZooKeeper) -> Iterator[Store]:
    """A store whose connection goes through the cable."""
    store = open_store(place.url.replace(zookeeper.address, cable.address))
    yield store
    cable.revive()
    store.close()


def test_who_created_a_node_is_told_so(store: Store, cable: Cable, lost: Lost) -> None:
    cable.cut_at("create", lost)
    assert store.create("/job/j", "mine")
    cable.cut_at("create", lost)
    assert store.create_child("/job/j/below", "mine")
    assert cable.cuts == 2


def test_who_came_second_is_told_so(store: Store, other: Store, cable: Cable, lost: Lost) -> None:
    other.create("/job/j", "same")
    store.get("/job/j")
    cable.cut_at("create", lost)
    assert not store.create("/job/j", "same")
    cable.cut_at("create", lost)
    assert not store.create("/job/j", "another")


def test_an_ephemeral_node_of_the_own_session_is_no_error(
    store: Store, other: Store, cable: Cable, lost: Lost
) -> None:
    store.create("/pulse/other")
    cable.cut_at("create", lost)
    store.create_ephemeral("/pulse/p", "x")
    other.create_ephemeral("/pulse/q", "x")
    cable.cut_at("create", lost)
    with pytest.raises(StoreError, match="/pulse/q is there already"):
        store.create_ephemeral("/pulse/q", "x")


def test_who_stands_leaves_no_second_proposal(store: Store, cable: Cable, lost: Lost) -> None:
    first = Candidate(store)
    cable.cut_at("create", lost)
    second = Candidate(store)
    assert store.children(paths.ELECTION) == [first.name, second.name]
    assert cable.cuts == 1


def test_a_set_is_done(store: Store, cable: Cable, lost: Lost) -> None:
    store.create("/ack/1")
    cable.cut_at("set", lost)
    assert store.set("/ack/1", "touched")
    assert store.get("/ack/1") == "touched"


def test_an_epoch_is_nobody_elses(store: Store, other: Store, cable: Cable, lost: Lost) -> None:
    first = other.raise_epoch()
    cable.cut_at("set", lost)
    epoch = store.raise_epoch()
    assert epoch > first
    assert store.get(paths.EPOCH) == str(epoch)
    store.transact(epoch, [Put("/job/j")])
    assert other.raise_epoch() == epoch + 1


def test_a_transaction_is_done(store: Store, cable: Cable, lost: Lost) -> None:
    store.create("/task/j/a-0/leader")
    epoch = store.raise_epoch()
    cable.cut_at("multi", lost)
    store.transact(epoch, [Create("/ack/1"), Put("/job/j", "x"), Delete("/task/j")])
    assert [store.get(p) for p in ("/ack/1", "/job/j", "/task/j")] == ["", "x", None]
    assert cable.cuts == 1


def test_a_transaction_of_an_old_epoch_is_not_done(
    store: Store, other: Store, cable: Cable, lost: Lost
) -> None:
    epoch = store.raise_epoch()
    other.raise_epoch()
    cable.cut_at("multi", lost)
    with pytest.raises(EpochIsOver):
        store.transact(epoch, [Put("/job/j", "x")])
    assert store.get("/job/j") is None
    assert cable.cuts == 1


def test_a_deletion_is_done(store: Store, cable: Cable, lost: Lost) -> None:
    store.create("/task/j/a-0/leader")
    cable.cut_at("multi", lost)
    store.delete("/task/j")
    assert store.children("/task") == []


def test_what_changes_while_there_is_no_connection_is_told(
    store: Store, other: Store, cable: Cable
) -> None:
    assert store.watch("/ack/1") is None
    assert store.watch_children("/plan") == []
    cable.die()
    other.create("/ack/1", "touched")
    other.create("/plan/j")
    cable.revive()
    assert set(fired(store)) == {"/ack/1", "/plan"}
    assert store.watch("/ack/1") == "touched"
    assert store.watch_children("/plan") == ["j"]


@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays away"])
def test_without_a_connection_for_too_long_the_session_has_ended(
    store: Store, other: Store, cable: Cable, comes_back: bool
) -> None:
    store.create_ephemeral("/pulse/p")
    other.watch("/pulse/p")
    cable.die()
    assert other.changed(SESSION + 3) == "/pulse/p"
    if comes_back:
        cable.revive()
    calls = {
        "changed": lambda: store.changed(None),
        "get": lambda: store.get("/job/j"),
        "set": lambda: store.set("/job/j", ""),
        "create": lambda: store.create("/job/j"),
        "children": lambda: store.children("/job"),
        "below": lambda: store.below("/job"),
        "stand": lambda: store.stand("/election"),
        "transact": lambda: store.transact(1, []),
    }
    for call in calls.values():
        with pytest.raises(SessionLost, match=r"the session with ZooKeeper at .* has ended: "):
            call()
    assert other.get("/job/j") is None
