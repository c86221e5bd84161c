"""What all stores tell of changes."""

from __future__ import annotations

import threading
import time

import pytest

from pyrite.durable.protocol.tree.writes import Create, Delete, Put, Write
from pyrite.durable.store.store import Store
from tests.durable.store.places import Place, fired


def test_a_watch_reads_and_tells_of_creating_setting_and_deleting(
    store: Store, other: Store
) -> None:
    assert store.watch("/ack/1") is None
    other.create("/ack/1")
    assert store.changed(10) == "/ack/1"
    assert store.watch("/ack/1") == ""
    other.set("/ack/1", "touched")
    assert store.changed(10) == "/ack/1"
    assert store.watch("/ack/1") == "touched"
    other.delete("/ack/1")
    assert store.changed(10) == "/ack/1"


def test_many_nodes_are_watched_at_once(store: Store, other: Store) -> None:
    other.create("/ack/1", "one")
    other.create("/ack/3", "three")
    assert store.watch_all(["/ack/1", "/ack/2", "/ack/3"]) == ["one", None, "three"]
    other.delete("/ack/3")
    other.create("/ack/2")
    other.set("/ack/1", "touched")
    assert list(fired(store)) == ["/ack/3", "/ack/2", "/ack/1"]


def test_a_watch_tells_once(store: Store, other: Store) -> None:
    other.create("/ack/1")
    store.watch("/ack/1")
    store.watch("/ack/1")
    for _ in range(3):
        other.set("/ack/1", "touched")
    assert list(fired(store)) == ["/ack/1"]


def test_what_was_before_a_watch_does_not_fire_it(store: Store, other: Store) -> None:
    other.create("/ack/1")
    store.set("/ack/1", "touched")
    store.watch("/ack/1")
    store.watch_children("/ack")
    assert store.changed(0.2) is None


def test_own_writes_fire_own_watches(store: Store) -> None:
    store.watch("/ack/1")
    assert store.changed(0.05) is None
    store.create("/ack/1")
    assert store.changed(10) == "/ack/1"


def test_a_watch_of_children_tells_when_one_comes_or_goes(store: Store, other: Store) -> None:
    assert store.watch_children("/plan") == []
    other.create("/plan/a")
    while store.watch_children("/plan") != ["a"]:
        assert store.changed(10) == "/plan"
    list(fired(store, 0.1))
    store.watch_children("/plan")
    other.set("/plan/a", "new data")
    assert store.changed(0.2) is None
    other.delete("/plan/a")
    assert store.changed(10) == "/plan"
    assert store.watch_children("/plan") == []


def test_watches_fire_in_the_order_of_the_changes(store: Store, other: Store) -> None:
    names = ["/c", "/a", "/d", "/b"]
    for name in sorted(names):
        store.watch(name)
    for name in names:
        other.create(name)
    assert list(fired(store)) == names


def test_a_transaction_fires_the_watches_of_all_its_writes(store: Store, other: Store) -> None:
    for name in ("put", "gone", "same"):
        other.create(f"/x/{name}/below")
    for name in ("new", "put", "gone", "gone/below", "same"):
        store.watch(f"/x/{name}")
    store.watch_children("/x")
    writes: list[Write] = [
        Create("/x/new"),
        Put("/x/put", "1"),
        Delete("/x/gone"),
        Create("/x/same", "1"),
    ]
    other.transact(other.raise_epoch(), writes)
    assert set(fired(store)) == {"/x/new", "/x/put", "/x/gone", "/x/gone/below", "/x"}


def test_without_a_change_it_waits_as_long_as_it_was_told(store: Store) -> None:
    store.watch("/ack/1")
    began = time.monotonic()
    assert store.changed(0.1) is None
    assert time.monotonic() - began >= 0.1
    assert store.changed(0) is None


def test_a_change_that_has_come_is_told_without_waiting(store: Store) -> None:
    store.watch("/ack/1")
    store.watch("/ack/2")
    store.create("/ack/1")
    store.create("/ack/2")
    assert store.changed(10) == "/ack/1"
    while (path := store.changed(0)) is None:
        pass
    assert path == "/ack/2"


def test_another_thread_wakes_it(store: Store) -> None:
    store.watch("/ack/1")
    waker = threading.Thread(target=store.wake)
    waker.start()
    assert store.changed(None) is None
    waker.join()
    store.create("/ack/1")
    assert store.changed(10) == "/ack/1"


def test_a_wake_before_the_wait_is_not_lost(store: Store) -> None:
    store.wake()
    assert store.changed(None) is None


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "ended by itself"])
def test_an_ephemeral_node_goes_with_its_session(place: Place, closes: bool) -> None:
    store, other = place.open(), place.open()
    other.create_ephemeral("/pulse/p", "here")
    assert store.watch("/pulse/p") == "here"
    assert store.watch_children("/pulse") == ["p"]
    if closes:
        other.close()
    else:
        other.delete("/pulse/p")
    assert set(fired(store)) == {"/pulse/p", "/pulse"}
    assert store.get("/pulse/p") is None
