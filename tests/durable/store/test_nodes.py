"""What all stores do with nodes."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.store.store import EpochIsOver, Store, StoreError
from tests.durable.store.places import Place


def test_a_node_that_is_not_there_has_no_data_and_no_children(store: Store) -> None:
    assert store.get("/job/none") is None
    assert store.children("/job/none") == []
    assert store.below("/job/none") == {}


def test_the_first_one_to_create_a_node_wins(store: Store, other: Store) -> None:
    assert store.create("/job/j", "one")
    assert not other.create("/job/j", "two")
    assert (store.get("/job/j"), other.get("/job/j")) == ("one", "one")


def test_data_is_any_text(store: Store) -> None:
    text = 'ä€😀\n\x00"quoted"'
    store.create("/job/j", text)
    assert store.get("/job/j") == text


def test_only_a_node_that_is_there_is_set(store: Store, other: Store) -> None:
    assert not store.set("/ack/1", "touched")
    store.create("/ack/1")
    assert other.set("/ack/1", "touched")
    assert store.get("/ack/1") == "touched"


def test_children_are_names_in_order(store: Store) -> None:
    for name in ("b", "a", "c"):
        store.create(f"/plan/{name}")
    store.create("/plan/a/below")
    assert store.children("/plan") == ["a", "b", "c"]
    assert "plan" in store.children("/")


def test_a_parent_is_a_node_without_data(store: Store) -> None:
    store.create("/task/j/a-0")
    assert store.get("/task/j") == ""
    assert not store.create("/task/j")


def test_a_child_is_created_only_below_a_node_that_is_there(store: Store, other: Store) -> None:
    assert store.create_child("/task/j/a-0/leader", "x") is None
    assert store.get("/task/j") is None
    store.create("/task/j/a-0")
    assert store.create_child("/task/j/a-0/leader", "x") is True
    assert other.create_child("/task/j/a-0/leader", "y") is False
    assert store.get("/task/j/a-0/leader") == "x"


def test_a_node_is_deleted_with_all_below_it_and_nothing_else(store: Store) -> None:
    for path in ("/t/a", "/t/a/b/c", "/t/a/d", "/t/a-0", "/t/a.complete", "/t/a0"):
        store.create(path)
    store.delete("/t/a")
    store.delete("/t/none")
    assert store.children("/t") == ["a-0", "a.complete", "a0"]
    assert store.get("/t/a/b/c") is None


def test_what_is_below_some_paths_is_read_at_once(store: Store) -> None:
    written = {f"/{kind}/{name}": kind for kind in ("job", "plan", "ack") for name in "abc"}
    for path, data in written.items():
        store.create(path, data)
    found = {path: data for path, data in store.below("/job", "/ack/a", "/none").items() if data}
    assert found == {p: d for p, d in written.items() if d == "job" or p == "/ack/a"}


def test_below_the_root_is_everything(store: Store) -> None:
    store.create("/job/j", "x")
    store.create_ephemeral("/pulse/p", "y")
    assert {path for path, data in store.below("/").items() if data} == {"/job/j", "/pulse/p"}


def test_an_epoch_is_raised_by_one(store: Store, other: Store) -> None:
    assert [store.raise_epoch(), other.raise_epoch(), store.raise_epoch()] == [1, 2, 3]
    assert store.get(paths.EPOCH) == "3"


def test_a_transaction_does_all_its_writes(store: Store) -> None:
    store.create("/task/j/a-0/leader")
    store.create("/ack/1", "touched")
    store.create("/payload/p", "old")
    writes: list[Write] = [
        Create("/ack/1"),
        Create("/ack/2"),
        Put("/payload/p", "new"),
        Put("/cooldown/p", "1"),
        Delete("/task/j"),
        Delete("/plan/none"),
        CloseQueues("j"),
    ]
    epoch = store.raise_epoch()
    for _ in range(2):
        store.transact(epoch, writes)
        found = {p: store.get(p) for p in ("/ack/1", "/ack/2", "/payload/p", "/cooldown/p")}
        assert found == dict(zip(found, ("touched", "", "new", "1")))
        assert store.get("/task/j/a-0/leader") is store.get("/task/j") is None
        assert store.children("/queues") == []


def test_a_transaction_deletes_what_others_have_created(store: Store, other: Store) -> None:
    epoch = store.raise_epoch()
    other.create("/plan/j/below")
    store.transact(epoch, [Delete("/plan/j")])
    assert other.children("/plan") == []
    other.create("/plan/j")
    store.transact(epoch, [Delete("/plan/j"), Create("/plan/k")])
    other.delete("/plan/k")
    store.transact(epoch, [Create("/plan/k")])
    assert other.children("/plan") == ["k"]


def test_later_writes_of_a_transaction_see_the_earlier_ones(store: Store) -> None:
    store.create("/a/b", "0")
    writes: list[Write] = [
        Delete("/a"),
        Put("/a/b", "1"),
        Create("/a/b", "2"),
        Put("/c", "3"),
        Put("/c", "4"),
    ]
    store.transact(store.raise_epoch(), [*writes, Create("/d/e/f", "5"), Delete("/d/e")])
    assert [store.get(path) for path in ("/a/b", "/c", "/d", "/d/e")] == ["1", "4", "", None]


def test_a_transaction_of_an_old_epoch_does_nothing(store: Store, other: Store) -> None:
    old = store.raise_epoch()
    other.raise_epoch()
    with pytest.raises(EpochIsOver, match="another coordinator leads"):
        store.transact(old, [Put("/job/j", "x"), Delete(paths.EPOCH)])
    with pytest.raises(EpochIsOver):
        store.transact(old, [])
    assert store.get("/job/j") is None


def test_500_writes_are_one_transaction(store: Store) -> None:
    writes = [Put(f"/peer-state/p{number}/state-1", "idle" * 20) for number in range(500)]
    store.transact(store.raise_epoch(), writes)
    assert len(store.children("/peer-state")) == 500


def test_a_node_that_is_too_large_is_a_clear_error(store: Store) -> None:
    epoch = store.raise_epoch()
    store.create("/job/j", "é" * 500_000)
    for write in (
        lambda: store.create("/job/k", "x" * 1_000_001),
        lambda: store.set("/job/j", "é" * 500_001),
        lambda: store.transact(epoch, [Create("/a"), Put("/job/j", "x" * 1_000_001)]),
    ):
        with pytest.raises(StoreError, match=r"node /job/. would hold 1,000,00. bytes"):
            write()
    assert store.children("/job") == ["j"]
    assert store.get("/a") is None


def test_text_that_is_not_unicode_is_a_clear_error(store: Store) -> None:
    with pytest.raises(StoreError, match="the text for the node /job/j cannot be stored"):
        store.create("/job/j", "\ud800")


def test_a_store_that_was_closed_says_so(place: Place) -> None:
    store = place.open()
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.get("/job/j")
