"""The thread that uses the store for a client."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pyrite.durable.client.desk import Desk
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import SessionLost, Store


def test_what_was_asked_in_a_session_that_is_lost_is_asked_again(tmp_path: Path) -> None:
    desk = Desk(lambda: SqliteStore(tmp_path))
    stores: list[Store] = []

    def act(store: Store) -> bool:
        stores.append(store)
        if len(stores) == 1:
            raise SessionLost("the session has ended")
        return store.create("/plan/job")

    assert desk.ask(act)
    assert stores[0] is not stores[1]
    desk.close()


def test_what_nobody_waits_for_any_more_is_not_done(tmp_path: Path) -> None:
    desk = Desk(lambda: SqliteStore(tmp_path))
    may_go_on = threading.Event()
    held = desk.post(lambda _: may_go_on.wait(10))
    with pytest.raises(TimeoutError):
        desk.ask(lambda store: store.create("/cancel/job"), seconds=0.01)
    may_go_on.set()
    assert held.result(10)
    assert desk.ask(lambda store: store.get("/cancel/job")) is None
    desk.close()


def test_a_desk_goes_on_when_nobody_waits_for_what_it_does(tmp_path: Path) -> None:
    desk = Desk(lambda: SqliteStore(tmp_path))
    may_go_on = threading.Event()
    with pytest.raises(TimeoutError):
        desk.ask(lambda _: may_go_on.wait(10), seconds=0.01)
    may_go_on.set()
    assert desk.ask(lambda _: 1, seconds=10) == 1
    desk.close()
