"""Durable queues in one SQLite file of a folder, for the processes of one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from pyrite.durable.folder import layout
from pyrite.durable.folder.database import PATIENCE, Database
from pyrite.durable.folder.locks import is_held
from pyrite.durable.protocol.exactness.commits import Commit, Record, Stored
from pyrite.durable.protocol.exactness.tails import Count
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.checks import (
    already_open,
    check_follows,
    check_is_last,
    check_outgoing,
    gone,
)
from pyrite.durable.queues.numbering import Numbering, numbering
from pyrite.durable.queues.queues import (
    MOST_READ,
    Delivery,
    Length,
    Message,
    Outgoing,
    QueuesError,
    QueuesGone,
)
from pyrite.durable.queues.texts import read_record, read_sentinel, record_text, sentinel_text

# Sequences come from one counter and are never used twice, so a message that was taken and is not
# there any more has been committed: its row is its marker. `done` only tells a repeated commit from
# a second one. Bodies have a table of their own, so that to take a message does not rewrite it.
SCHEMA: Final = """
CREATE TABLE counter (last INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL, code INTEGER NOT NULL, is_open INTEGER NOT NULL);
CREATE TABLE entries (job INTEGER, queue INTEGER, sequence INTEGER, edge INTEGER, body INTEGER,
    sentinel TEXT, owner TEXT, tries INTEGER, due REAL,
    PRIMARY KEY (job, queue, sequence)) WITHOUT ROWID;
CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE records (job INTEGER, part INTEGER, sequence INTEGER, record TEXT, state INTEGER,
    PRIMARY KEY (job, part)) WITHOUT ROWID;
CREATE TABLE staged (job INTEGER, part INTEGER, id INTEGER, attempt TEXT, queue INTEGER,
    edge INTEGER, body INTEGER, sentinel TEXT, PRIMARY KEY (job, part, id)) WITHOUT ROWID;
CREATE TABLE done (number INTEGER PRIMARY KEY, job INTEGER, attempt TEXT)
"""
APPLICATION: Final = 0x50795131
MOST_BYTES: Final = 16 * 1024 * 1024
CHUNK: Final = 256
"""Messages per transaction where a job is opened or closed: others can commit in between."""
REMEMBERED: Final = 200_000
"""A commit of taken messages can be repeated until so many messages came after it."""
ORPHANS_EVERY: Final = 0.05
FIRST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.01

ADD_BODY: Final = "INSERT INTO bodies VALUES (?, ?)"
ADD_ENTRY: Final = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, NULL, 0, 0)"
DROP_BODY: Final = "DELETE FROM bodies WHERE id = ?"
DROP_ENTRY: Final = "DELETE FROM entries WHERE job = ? AND queue = ? AND sequence = ?"
PENDING: Final = "job = ? AND queue = ? AND owner IS NULL AND due <= ?"


@dataclass(frozen=True, slots=True)
class _Job:
    id: int
    name: str
    numbers: Numbering


@dataclass(frozen=True, slots=True)
class _Taken:
    """The handle of a delivery: nobody else has the same owner and tries."""

    queue: int
    owner: str
    tries: int


class SqliteQueues:
    servers = 1
    most_bytes = MOST_BYTES

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self._folder = folder
        self._database = Database(
            layout.queues_file(folder),
            SCHEMA,
            application=APPLICATION,
            error=QueuesError,
            patience=patience,
        )
        self._jobs: dict[str, _Job] = {}
        self._looked: dict[tuple[int, int], float] = {}
        self._read_to: dict[tuple[int, int], int] = {}

    # The life of a job's queues

    def open_job(
        self, job: str, workflow: Workflow, first: Iterable[Outgoing], *, code: bytes
    ) -> None:
        opened = self._add_job(job, workflow, code)
        messages = iter(first)
        while chunk := list(islice(messages, CHUNK)):
            self._check(opened, chunk)
            with self._database.writing() as db:
                self._set_last(db, self._publish(db, opened, self._last(db), chunk))
        with self._database.writing() as db:
            db.execute("UPDATE jobs SET is_open = 1 WHERE id = ?", (opened.id,))

    def _add_job(self, job: str, workflow: Workflow, code: bytes) -> _Job:
        numbers = numbering(workflow)
        with self._database.writing() as db:
            if db.execute("SELECT 1 FROM jobs WHERE name = ?", (job,)).fetchone():
                raise already_open(job)
            number = self._last(db) + 1
            self._set_last(db, number)
            db.execute(ADD_BODY, (number, code))
            id = db.execute(
                "INSERT INTO jobs (name, workflow, code, is_open) VALUES (?, ?, ?, 0)",
                (job, workflow.text(), number),
            ).lastrowid
            assert id is not None
            empty = record_text(Record())
            db.executemany(
                "INSERT INTO records VALUES (?, ?, 0, ?, NULL)",
                ((id, part, empty) for part in numbers.parts.values()),
            )
        return _Job(id, job, numbers)

    def code(self, job: str) -> bytes:
        with self._database.reading() as db:
            row = db.execute(
                "SELECT body FROM jobs JOIN bodies ON bodies.id = jobs.code WHERE name = ?",
                (job,),
            ).fetchone()
        if row is None:
            raise self._gone(job)
        return bytes(row[0])

    def close_job(self, job: str) -> None:
        self._jobs.pop(job, None)
        with self._database.writing() as db:
            row = db.execute("SELECT id, code FROM jobs WHERE name = ?", (job,)).fetchone()
            db.execute("UPDATE jobs SET is_open = 0 WHERE name = ?", (job,))
        if row is None:
            return
        id, code = row
        for table, key in ("entries", "queue, sequence"), ("staged", "part, id"):
            while self._drop_chunk(table, key, id):
                pass
        with self._database.writing() as db:
            db.execute(
                "DELETE FROM bodies WHERE id = ?"
                " OR id IN (SELECT state FROM records WHERE job = ?)",
                (code, id),
            )
            for table in "records", "done":
                db.execute(f"DELETE FROM {table} WHERE job = ?", (id,))
            db.execute("DELETE FROM jobs WHERE id = ?", (id,))
        self._database.shrink()

    def _drop_chunk(self, table: str, key: str, job: int) -> bool:
        with self._database.writing() as db:
            rows = db.execute(
                f"SELECT body, job, {key} FROM {table} WHERE job = ? LIMIT {CHUNK}", (job,)
            ).fetchall()
            db.executemany(DROP_BODY, ((row[0],) for row in rows))
            db.executemany(
                f"DELETE FROM {table} WHERE (job, {key}) = (?, ?, ?)", (row[1:] for row in rows)
            )
        return bool(rows)

    def jobs(self) -> list[str]:
        with self._database.reading() as db:
            return [name for (name,) in db.execute("SELECT name FROM jobs ORDER BY id")]

    def home(self, part: Part) -> int:
        return 0

    def lengths(self, job: str) -> list[Length]:
        found = self._job(job)
        with self._database.reading() as db:
            self._open_last(db, found)
            counts = {
                queue: (messages, held)
                for queue, messages, held in db.execute(
                    "SELECT queue, count(*), count(owner) FROM entries"
                    " WHERE job = ? GROUP BY queue",
                    (found.id,),
                )
            }
        rows = []
        for (task, edges), queues in found.numbers.by_edges().items():
            here = [counts.get(queue, (0, 0)) for queue in queues]
            messages, held = (sum(each) for each in zip(*here))
            rows.append(Length(task, edges, messages, held))
        return rows

    # Sequential parts

    def record(self, part: Part) -> Stored:
        job = self._job(part.job)
        number = job.numbers.part(part)
        with self._database.reading() as db:
            self._open_last(db, job)
            return self._record(db, job, number)[0]

    def state(self, part: Part, record: Stored) -> bytes:
        job = self._job(part.job)
        number = job.numbers.part(part)
        with self._database.reading() as db:
            self._open_last(db, job)
            last, state = self._record(db, job, number)
            check_is_last(part, record, last)
            if state is None:
                return b""
            return bytes(db.execute("SELECT body FROM bodies WHERE id = ?", (state,)).fetchone()[0])

    def read(
        self, part: Part, edge: str, server: int, position: int, *, limit: int
    ) -> list[Delivery]:
        job = self._job(part.job)
        queue = job.numbers.queue(part, edge)
        with self._database.reading() as db:
            found = db.execute(
                "SELECT sequence, edge, sentinel, bodies.body FROM entries"
                " LEFT JOIN bodies ON bodies.id = entries.body"
                " WHERE job = ? AND queue = ? AND sequence >= ? ORDER BY sequence LIMIT ?",
                (job.id, queue, position, limit),
            )
            rows = list(_not_too_much(found, lambda row: len(row[3] or b"")))
            found.close()
            if not rows:
                self._open_last(db, job)
        self._read_to[job.id, queue] = rows[-1][0] + 1 if rows else position
        return [
            Delivery(part, 0, sequence, _message(job, edge_number, body, sentinel))
            for sequence, edge_number, sentinel, body in rows
        ]

    def stage(self, part: Part, attempt: str, outgoing: Sequence[Outgoing]) -> None:
        job = self._job(part.job)
        number = job.numbers.part(part)
        self._check(job, outgoing)
        with self._database.writing() as db:
            last = self._open_last(db, job)
            rows = list(_rows(job, last, outgoing))
            db.executemany(ADD_BODY, _bodies(rows, outgoing))
            db.executemany(
                "INSERT INTO staged VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (job.id, number, id, attempt, queue, edge, body, sentinel)
                    for _, queue, id, edge, body, sentinel in rows
                ),
            )
            self._set_last(db, last + len(rows))

    def commit(
        self, part: Part, commit: Commit, outgoing: Sequence[Outgoing], *, state: bytes | None
    ) -> Stored:
        job = self._job(part.job)
        number = job.numbers.part(part)
        self._check(job, outgoing)
        with self._database.writing() as db:
            sequence = self._open_last(db, job)
            last, old_state = self._record(db, job, number)
            check_follows(part, last, commit)
            sequence += self._publish_staged(db, job, number, commit.record.attempt, sequence)
            sequence = self._publish(db, job, sequence, outgoing) + 1
            new_state = old_state if state is None else sequence
            if state is not None:
                db.execute(DROP_BODY, (old_state,))
                db.execute(ADD_BODY, (sequence, state))
            db.execute(
                "UPDATE records SET sequence = ?, record = ?, state = ? WHERE job = ? AND part = ?",
                (sequence, record_text(commit.record), new_state, job.id, number),
            )
            for (edge, _), position in commit.record.positions.items():
                if last.record.positions.get((edge, 0)) != position:
                    self._purge(db, job, job.numbers.queue(part, edge), position)
            self._set_last(db, sequence)
        return Stored(sequence, commit.record)

    def _publish_staged(self, db: Connection, job: _Job, part: int, attempt: str, last: int) -> int:
        place = (job.id, part)
        where = "FROM staged WHERE job = ? AND part = ?"
        if db.execute(f"SELECT 1 {where} LIMIT 1", place).fetchone() is None:
            return 0
        published = db.execute(
            "INSERT INTO entries SELECT job, queue, ? + row_number() OVER (ORDER BY id), edge,"
            f" body, sentinel, NULL, 0, 0 {where} AND attempt = ?",
            (last, *place, attempt),
        ).rowcount
        db.execute(
            f"DELETE FROM bodies WHERE id IN (SELECT body {where} AND attempt <> ?)",
            (*place, attempt),
        )
        db.execute(f"DELETE {where}", place)
        return published

    def _purge(self, db: Connection, job: _Job, queue: int, position: int) -> None:
        where = "FROM entries WHERE job = ? AND queue = ? AND sequence < ?"
        passed = (job.id, queue, position)
        bodies = db.execute(f"SELECT body {where} AND body IS NOT NULL", passed).fetchall()
        db.executemany(DROP_BODY, bodies)
        db.execute(f"DELETE {where}", passed)

    # Concurrent parts

    def take(self, part: Part, *, owner: str, limit: int) -> list[Delivery]:
        job = self._job(part.job)
        queue = job.numbers.shared_queue(part)
        pending = (job.id, queue, time.time())
        # Also when something is pending: a sentinel always is, until nothing else is left.
        self._free_orphans(job, queue)
        if not self._has(PENDING, pending):
            return []
        with self._database.writing() as db:
            self._open_last(db, job)
            found = db.execute(
                "SELECT sequence, edge, sentinel, tries, body,"
                " (SELECT length(body) FROM bodies WHERE id = entries.body) FROM entries"
                f" WHERE {PENDING} ORDER BY sequence LIMIT ?",
                (*pending, limit),
            ).fetchall()
            rows = list(_not_too_much(found, lambda row: row[5] or 0))
            db.executemany(
                "UPDATE entries SET owner = ?, tries = tries + 1"
                " WHERE job = ? AND queue = ? AND sequence = ?",
                ((owner, job.id, queue, row[0]) for row in rows),
            )
        return list(self._deliver(job, part, queue, owner, rows))

    def _deliver(
        self, job: _Job, part: Part, queue: int, owner: str, rows: Sequence[Any]
    ) -> Iterator[Delivery]:
        """Reads the bodies after the transaction, so that others need not wait for it."""
        with self._database.reading() as db:
            for sequence, edge, sentinel, tries, id, _ in rows:
                body = None
                if id is not None:
                    found = db.execute("SELECT body FROM bodies WHERE id = ?", (id,)).fetchone()
                    if found is None:
                        continue  # an earlier owner that was thought dead has committed it
                    body = found[0]
                message = _message(job, edge, body, sentinel)
                handle = _Taken(queue, owner, tries + 1)
                yield Delivery(part, 0, sequence, message, tries, handle)

    def _free_orphans(self, job: _Job, queue: int) -> None:
        """Makes the messages of dead owners pending again."""
        now = time.monotonic()
        if now < self._looked.get((job.id, queue), 0.0) + ORPHANS_EVERY:
            return
        self._looked[job.id, queue] = now
        with self._database.reading() as db:
            self._open_last(db, job)
            owners = db.execute(
                "SELECT DISTINCT owner FROM entries"
                " WHERE job = ? AND queue = ? AND owner IS NOT NULL",
                (job.id, queue),
            ).fetchall()
        dead = [owner for (owner,) in owners if not is_held(self._folder, owner)]
        if dead:
            with self._database.writing() as db:
                db.executemany(
                    "UPDATE entries SET owner = NULL WHERE job = ? AND queue = ? AND owner = ?",
                    ((job.id, queue, owner) for owner in dead),
                )

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        pass  # the owner's lock tells that it lives

    def commit_taken(
        self, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        job = self._job(deliveries[0].part.job)
        self._check(job, outgoing)
        with self._database.writing() as db:
            last = self._open_last(db, job)
            found = self._found(db, job, deliveries)
            if None in found:
                query = "SELECT 1 FROM done WHERE job = ? AND attempt = ?"
                return db.execute(query, (job.id, attempt)).fetchone() is not None
            number = self._publish(db, job, last, outgoing) + 1
            db.executemany(DROP_BODY, [row for row in found if row and row[0] is not None])
            db.executemany(DROP_ENTRY, (_key(job, delivery) for delivery in deliveries))
            db.execute("INSERT INTO done VALUES (?, ?, ?)", (number, job.id, attempt))
            db.execute("DELETE FROM done WHERE number < ?", (number - REMEMBERED,))
            self._set_last(db, number)
        return True

    def drop_done(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        if not deliveries:
            return []
        job = self._job(deliveries[0].part.job)
        with self._database.reading() as db:
            self._open_last(db, job)
            found = self._found(db, job, deliveries)
        return [one for one, row in zip(deliveries, found) if row is not None]

    def give_back(self, deliveries: Sequence[Delivery], *, after: float = 0.0) -> None:
        if not deliveries:
            return
        job = self._job(deliveries[0].part.job)
        due = time.time() + after if after > 0 else 0
        with self._database.writing() as db:
            db.executemany(
                "UPDATE entries SET owner = NULL, due = ?"
                " WHERE job = ? AND queue = ? AND sequence = ? AND owner = ? AND tries = ?",
                (
                    (due, *_key(job, delivery), handle.owner, handle.tries)
                    for delivery in deliveries
                    for handle in [_handle(delivery)]
                ),
            )

    def counts(self, part: Part) -> list[Count]:
        job = self._job(part.job)
        with self._database.reading() as db:
            last = self._open_last(db, job)
            total = held = 0
            for queue in job.numbers.queues_of(part):
                one = db.execute(
                    "SELECT count(*), count(owner) FROM entries WHERE job = ? AND queue = ?",
                    (job.id, queue),
                ).fetchone()
                total, held = total + one[0], held + one[1]
        return [Count(total - held, held, last)]

    # Both

    def wait(self, parts: Sequence[Part], timeout: float) -> None:
        give_up = time.monotonic() + timeout
        watched = [(self._job(part.job), part) for part in parts]
        has_concurrent = any(part.task in job.numbers.concurrent for job, part in watched)
        pause, version = FIRST_PAUSE, -1
        while True:
            before, version = version, self._database.version()
            # Back-offs and owners end without a change of the file.
            look = version != before or (has_concurrent and pause == LONGEST_PAUSE)
            if look and any(self._may_have(job, part) for job, part in watched):
                return
            left = give_up - time.monotonic()
            if left <= 0:
                return
            pause = FIRST_PAUSE if version != before else min(pause * 1.3, LONGEST_PAUSE)
            time.sleep(min(pause, left))

    def _may_have(self, job: _Job, part: Part) -> bool:
        for queue in job.numbers.queues_of(part):
            if part.task not in job.numbers.concurrent:
                position = self._read_to.get((job.id, queue), 0)
                if self._has("job = ? AND queue = ? AND sequence >= ?", (job.id, queue, position)):
                    return True
            elif self._has(PENDING, (job.id, queue, time.time())):
                return True
            elif time.monotonic() >= self._looked.get((job.id, queue), 0.0) + ORPHANS_EVERY:
                return self._has("job = ? AND queue = ? AND owner IS NOT NULL", (job.id, queue))
        return False

    def close(self) -> None:
        self._database.close()

    # What they share

    def _job(self, name: str) -> _Job:
        if name not in self._jobs:
            with self._database.reading() as db:
                row = db.execute(
                    "SELECT id, workflow FROM jobs WHERE name = ? AND is_open", (name,)
                ).fetchone()
            if row is None:
                raise self._gone(name)
            self._jobs[name] = _Job(row[0], name, numbering(Workflow.read(row[1])))
        return self._jobs[name]

    def _gone(self, name: str) -> QueuesGone:
        self._jobs.pop(name, None)
        return gone(name, layout.queues_file(self._folder))

    def _last(self, db: Connection) -> int:
        return int(db.execute("SELECT last FROM counter").fetchone()[0])

    def _open_last(self, db: Connection, job: _Job) -> int:
        """The last sequence. Raises if the job is closed."""
        row = db.execute(
            "SELECT last FROM counter, jobs WHERE id = ? AND is_open", (job.id,)
        ).fetchone()
        if row is None:
            raise self._gone(job.name)
        return int(row[0])

    def _set_last(self, db: Connection, last: int) -> None:
        db.execute("UPDATE counter SET last = ?", (last,))

    def _record(self, db: Connection, job: _Job, part: int) -> tuple[Stored, int | None]:
        sequence, text, state = db.execute(
            "SELECT sequence, record, state FROM records WHERE job = ? AND part = ?",
            (job.id, part),
        ).fetchone()
        return Stored(sequence, read_record(text)), state

    def _publish(self, db: Connection, job: _Job, last: int, outgoing: Sequence[Outgoing]) -> int:
        rows = list(_rows(job, last, outgoing))
        db.executemany(ADD_BODY, _bodies(rows, outgoing))
        db.executemany(ADD_ENTRY, rows)
        return last + len(rows)

    def _found(
        self, db: Connection, job: _Job, deliveries: Sequence[Delivery]
    ) -> list[tuple[int | None] | None]:
        """For each message the number of its body; None for those that are done."""
        query = "SELECT body FROM entries WHERE job = ? AND queue = ? AND sequence = ?"
        return [db.execute(query, _key(job, delivery)).fetchone() for delivery in deliveries]

    def _has(self, where: str, values: tuple[object, ...]) -> bool:
        with self._database.reading() as db:
            query = f"SELECT 1 FROM entries WHERE {where} LIMIT 1"
            return db.execute(query, values).fetchone() is not None

    def _check(self, job: _Job, outgoing: Sequence[Outgoing]) -> None:
        check_outgoing(job.name, outgoing, most_bytes=self.most_bytes, servers=self.servers)


def _rows(job: _Job, last: int, outgoing: Sequence[Outgoing]) -> Iterator[tuple[Any, ...]]:
    for sequence, out in enumerate(outgoing, last + 1):
        message = out.message
        yield (
            job.id,
            job.numbers.queue(out.part, message.edge),
            sequence,
            job.numbers.edge_numbers[message.edge],
            sequence if message.body else None,
            sentinel_text(message.sentinel) if message.sentinel else None,
        )


def _bodies(
    rows: Sequence[tuple[Any, ...]], outgoing: Sequence[Outgoing]
) -> Iterator[tuple[int, bytes]]:
    for row, out in zip(rows, outgoing):
        if out.message.body:
            yield row[2], out.message.body


def _message(job: _Job, edge: int, body: bytes | None, sentinel: str | None) -> Message:
    return Message(
        job.numbers.edges[edge],
        b"" if body is None else body,
        None if sentinel is None else read_sentinel(sentinel),
    )


def _not_too_much(rows: Iterable[Any], size_of: Callable[[Any], int]) -> Iterator[Any]:
    """Up to the row that reaches MOST_READ."""
    size = 0
    for row in rows:
        yield row
        size += size_of(row)
        if size >= MOST_READ:
            return


def _handle(delivery: Delivery) -> _Taken:
    assert isinstance(delivery.handle, _Taken)
    return delivery.handle


def _key(job: _Job, delivery: Delivery) -> tuple[int, int, int]:
    return job.id, _handle(delivery).queue, delivery.sequence
