"""Message queues that survive crashes: when a consumer dies, the message that it was working on is
found and handled by a crash strategy.

`Queue` is the interface. `SqliteQueue` keeps any number of queues in one SQLite file. The state of
a message is ready, working or failed. A message in the state working always has an owner, the
process of its consumer: both are written in one transaction. So it can be checked whether the owner
is alive.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pyrite.workload.system.alive import Identity

CrashStrategy = Literal["fail", "requeue"] | int
"""What happens to the message of a consumer that died: it fails, or it becomes ready again; with a
number, it becomes ready again that many times and then fails."""

POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    body: bytes
    tries: int  # how often it was consumed, this time included


class Queue(Protocol):
    """A first-in, first-out queue. No message is lost: each one is acknowledged, or is in
    `list_failed()`, or will be consumed."""

    def put(self, body: bytes) -> int:
        """Adds a message and returns its id."""

    def try_consume(self) -> Message | None:
        """Takes the first ready message; None if there is none. The crash strategy is applied first
        to the messages of consumers that died."""

    def consume(self, timeout: float | None = None) -> Message:
        """Waits for a ready message and takes it. Raises TimeoutError after `timeout` seconds."""

    def ack(self, message: Message) -> None:
        """Removes a message that was processed. Raises LostMessage if it no longer belongs to this
        consumer."""

    def nack(self, message: Message) -> None:
        """Marks a message as failed because it could not be processed. Raises LostMessage like
        `ack`."""

    def list_failed(self) -> list[Message]: ...

    def requeue_failed(self) -> int:
        """Makes all failed messages ready again, with `tries` reset. Returns their number."""

    def __len__(self) -> int:
        """The number of ready messages."""

    def close(self) -> None:
        """Closes the files or connections of this object. The messages stay."""


class LostMessage(LookupError):
    """The message now belongs to another consumer, or was already acknowledged."""


SCHEMA = """
create table if not exists messages (
    id integer primary key autoincrement,
    queue text not null,
    body blob not null,
    state text not null default 'ready' check (state in ('ready', 'working', 'failed')),
    tries integer not null default 0,
    pid integer,
    started text,
    check ((state = 'working') = (pid is not null and started is not null))
);
create index if not exists messages_by_state on messages (queue, state, id);
"""


class SqliteQueue:
    """`owner` is the process that consumes, by default this one. Every thread and every process
    needs its own SqliteQueue object."""

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        crash: CrashStrategy = "requeue",
        owner: Identity | None = None,
        is_alive: Callable[[Identity], bool] = lambda identity: identity.is_alive,
    ) -> None:
        if crash not in ("fail", "requeue") and (
            not isinstance(crash, int) or isinstance(crash, bool) or crash < 0
        ):
            raise ValueError(
                f"crash must be 'fail', 'requeue' or a number of requeues; got {crash!r}"
            )
        self.name = name
        self._crash = crash
        self._owner = owner or Identity.here()
        self._is_alive = is_alive
        self._database = open_database(path, SCHEMA)

    def put(self, body: bytes) -> int:
        with self._transaction():
            return put_message(self._database, self.name, body)

    def try_consume(self) -> Message | None:
        with self._transaction():
            self._see_to_the_dead()
            row = self._database.execute(
                "update messages set state = 'working', tries = tries + 1, pid = ?, started = ? "
                "where id = "
                "(select id from messages where queue = ? and state = 'ready' order by id limit 1) "
                "returning id, body, tries",
                (self._owner.pid, self._owner.started, self.name),
            ).fetchone()
        return Message(*row) if row is not None else None

    def consume(self, timeout: float | None = None) -> Message:
        give_up = None if timeout is None else time.monotonic() + timeout
        while (message := self.try_consume()) is None:
            if give_up is not None and time.monotonic() >= give_up:
                raise TimeoutError(f"no message came to the queue '{self.name}' within {timeout} s")
            time.sleep(POLL_SECONDS)  # SQLite sends no event when a row is added
        return message

    def ack(self, message: Message) -> None:
        with self._transaction():
            self._of_mine(message, "delete from messages")

    def nack(self, message: Message) -> None:
        with self._transaction():
            self._of_mine(
                message, "update messages set state = 'failed', pid = null, started = null"
            )

    def list_failed(self) -> list[Message]:
        with self._transaction():
            self._see_to_the_dead()
            rows = self._database.execute(
                "select id, body, tries from messages where queue = ? and state = 'failed' order "
                "by id",
                (self.name,),
            )
            return [Message(*row) for row in rows]

    def requeue_failed(self) -> int:
        with self._transaction():
            return self._database.execute(
                "update messages set state = 'ready', tries = 0 where queue = ? and state = "
                "'failed'",
                (self.name,),
            ).rowcount

    def __len__(self) -> int:
        with self._transaction():
            self._see_to_the_dead()
            (count,) = self._database.execute(
                "select count(*) from messages where queue = ? and state = 'ready'", (self.name,)
            ).fetchone()
        return int(count)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> SqliteQueue:
        return self

    def __exit__(self, kind: object, error: object, where: object) -> None:
        self.close()

    def _of_mine(self, message: Message, action: str) -> None:
        changed = self._database.execute(
            # only messages in the state working have an owner
            f"{action} where id = ? and queue = ? and tries = ? and pid = ? and started = ?",
            (message.id, self.name, message.tries, self._owner.pid, self._owner.started),
        ).rowcount
        if not changed:
            raise LostMessage(
                f"message {message.id} of the queue '{self.name}' no longer belongs to this "
                "consumer"
            )

    def _see_to_the_dead(self) -> None:
        rows = self._database.execute(
            "select id, tries, pid, started from messages where queue = ? and state = 'working'",
            (self.name,),
        ).fetchall()
        for id, tries, pid, started in rows:
            if not self._is_alive(Identity(pid, started)):
                again = self._crash == "requeue" or (
                    isinstance(self._crash, int) and tries <= self._crash
                )
                self._database.execute(
                    "update messages set state = ?, pid = null, started = null where id = ?",
                    ("ready" if again else "failed", id),
                )

    def _transaction(self) -> transaction:
        return transaction(self._database)


class transaction:
    """A transaction that takes SQLite's write lock at its begin. A transaction that begins with a
    read can fail to get the lock later."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("begin immediate")

    def __exit__(self, kind: object, error: object, where: object) -> None:
        self._database.execute("commit" if kind is None else "rollback")


def put_message(database: sqlite3.Connection, queue: str, body: bytes) -> int:
    """Adds a message within the caller's transaction."""
    id = database.execute(
        "insert into messages (queue, body) values (?, ?)", (queue, body)
    ).lastrowid
    assert id is not None
    return id


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Opens a database that several processes write to, and creates its tables if they are
    missing. If that fails, the connection is closed before the error is raised."""
    database = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.executescript(schema)
    except BaseException:
        database.close()
        raise
    return database
