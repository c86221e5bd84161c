"""The nodes in a SQLite file of a folder, for the processes of one machine.

An ephemeral node belongs to a session, which holds a lock on a file of its own; see `folder.locks`.
A node whose owner is dead is not there: whoever finds it deletes it. There is no server that tells
of changes, so watchers look whether the file has changed, and whether the owners of what they watch
are alive.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyrite.durable.folder import layout
from pyrite.durable.folder.database import Database
from pyrite.durable.folder.locks import Lock, is_held
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.store import rows
from pyrite.durable.store.limits import parent_of
from pyrite.durable.store.rows import Row, Writer
from pyrite.durable.store.store import EpochIsOver, SessionLost, StoreError
from pyrite.durable.store.watches import Watches

APPLICATION: Final = 0x50794E31
SHORTEST_PAUSE: Final = 0.002
LONGEST_PAUSE: Final = 0.02
LIVES_SECONDS: Final = 0.05
"""How often the owners of watched nodes are looked at, and at most a twentieth of the time."""


class SqliteStore:
    """See `Store`. Any number of processes and threads may have a store on the same folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder = folder.absolute()
        self._session = uuid.uuid4().hex
        self._lock: Lock | None = None
        self._database = Database(
            layout.nodes_file(folder), rows.SCHEMA, application=APPLICATION, error=StoreError
        )
        self._watches = Watches()
        self._sleeps = threading.Lock()  # whoever wakes releases it; an Event costs twice as much
        self._sleeps.acquire()
        self._version: int | None = None
        self._look_at_lives_at = 0.0
        self._read(rows.owned)  # what those who are dead have left goes
        with self._database.reading() as connection:
            self._seen = rows.last_change(connection)

    # Reading

    def get(self, path: str) -> str | None:
        _, found = self._read(rows.node, path)
        return found[0].data if found else None

    def children(self, path: str) -> list[str]:
        return _names(self._read(rows.children, path)[1])

    def below(self, *roots: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for root in roots:
            found.update((row.path, row.data) for row in self._read(rows.below, root)[1])
        return found

    # Writing

    def create(self, path: str, data: str = "") -> bool:
        with self._writing() as writer:
            return writer.create(path, data)

    def create_child(self, path: str, data: str = "") -> bool | None:
        with self._writing() as writer:
            if writer.find(parent_of(path)) is None:
                return None
            return writer.create(path, data)

    def set(self, path: str, data: str) -> bool:
        with self._writing() as writer:
            return writer.set(path, data)

    def delete(self, path: str) -> None:
        with self._writing() as writer:
            writer.delete(path)

    def create_ephemeral(self, path: str, data: str = "") -> None:
        session = self._begin_session()
        with self._writing() as writer:
            if not writer.create(path, data, session):
                raise StoreError(f"the node {path} is there already, and belongs to another")

    def stand(self, path: str, data: str = "") -> str:
        session = self._begin_session()
        with self._writing() as writer:
            name = f"proposal-{writer.next_number():010}"
            writer.create(f"{path}/{name}", data, session)
        return name

    def raise_epoch(self) -> int:
        with self._writing() as writer:
            epoch = _epoch(writer) + 1
            writer.put(paths.EPOCH, str(epoch))
        return epoch

    def transact(self, epoch: int, writes: Sequence[Write]) -> None:
        with self._writing() as writer:
            if (current := _epoch(writer)) != epoch or epoch == 0:
                raise EpochIsOver.of(epoch, current)
            for write in writes:
                match write:
                    case Create(path, data):
                        writer.create(path, data)
                    case Put(path, data):
                        writer.put(path, data)
                    case Delete(path):
                        writer.delete(path)
                    case CloseQueues():
                        pass

    # Watching

    def watch(self, path: str) -> str | None:
        at, found = self._read(rows.node, path)
        self._watches.arm(path, at)
        return found[0].data if found else None

    def watch_all(self, paths: Sequence[str]) -> list[str | None]:
        return [self.watch(path) for path in paths]

    def watch_children(self, path: str) -> list[str]:
        at, found = self._read(rows.children, path)
        self._watches.arm_children(path, at)
        return _names(found)

    def changed(self, timeout: float | None) -> str | None:
        give_up = None if timeout is None else time.monotonic() + timeout
        pause = SHORTEST_PAUSE
        while True:
            if self._sleeps.acquire(blocking=False):
                return None
            path = self._watches.take() or self._look()
            left = pause if give_up is None else give_up - time.monotonic()
            if path is not None or left <= 0:
                return path
            if self._sleeps.acquire(timeout=min(pause, left)):
                return None
            pause = min(pause * 1.1, LONGEST_PAUSE)

    def wake(self) -> None:
        with suppress(RuntimeError):  # it was woken already
            self._sleeps.release()

    def close(self) -> None:
        if self._lock is None:
            self._database.close()
            return
        try:
            with self._writing() as writer:
                writer.bury([self._session])
        finally:
            self._lock.release()
            self._lock = None
            self._database.close()

    # Within

    def _read(self, find: Callable[..., list[Row]], *arguments: str) -> tuple[int, list[Row]]:
        """The last change that the rows show, and the rows."""
        while True:
            with self._database.reading() as connection:
                found = find(connection, *arguments)
                at = rows.last_change(connection)
            owners = {row.owner for row in found if row.owner is not None}
            dead = [owner for owner in owners if not self._is_alive(owner)]
            if not dead:
                return at, found
            with self._writing() as writer:
                writer.bury(dead)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._database.writing() as connection:
            yield Writer(connection, self._is_alive)
        self._version = None  # SQLite tells only of what others have written

    def _is_alive(self, owner: str) -> bool:
        return owner == self._session or is_held(self._folder, owner)

    def _begin_session(self) -> str:
        if self._lock is None:
            try:
                self._lock = Lock(self._folder, self._session)
            except OSError as error:
                raise StoreError(
                    f"no session can begin in the folder {self._folder}: {error}; make room, or"
                    " choose a folder that you can write to"
                ) from error
        return self._session

    def _look(self) -> str | None:
        """Sees what has changed. The path of a watch that fired, if there is one."""
        if time.monotonic() >= self._look_at_lives_at:
            began = time.monotonic()
            self._look_at_lives()
            spent = time.monotonic() - began
            self._look_at_lives_at = began + max(LIVES_SECONDS, 20 * spent)
        version = self._database.version()
        if version != self._version:
            self._version = version
            with self._database.reading() as connection:
                changes = rows.changes_after(connection, self._seen)
                self._seen = rows.last_change(connection)
            if changes is None:
                self._watches.fire_all()
            else:
                self._watches.see(changes)
        return self._watches.take()

    def _look_at_lives(self) -> None:
        if self._lock is not None and not is_held(self._folder, self._session):
            raise SessionLost(f"the lock of this session in {self._folder} was deleted")
        if not self._database.is_in_place():
            raise SessionLost(f"{layout.nodes_file(self._folder)} was deleted or replaced")
        self._read(self._watched)

    def _watched(self, connection: sqlite3.Connection) -> list[Row]:
        return [row for row in rows.owned(connection) if self._watches.covers(row.path)]


def _names(found: list[Row]) -> list[str]:
    return sorted(row.path.rpartition("/")[2] for row in found)


def _epoch(writer: Writer) -> int:
    found = writer.find(paths.EPOCH)
    return int(found.data) if found else 0
