"""The thread that uses the store for a client."""

from __future__ import annotations

from pathlib import Path

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
