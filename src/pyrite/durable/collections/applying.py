"""Adds all that a job has collected to the maps and lists, in one step and once. What does not fit
into a short transaction is first staged, piece by piece: others can write in between."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import count, repeat
from sqlite3 import Connection
from typing import Final

from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.context import CollectionKind
from pyrite.durable.collections.access import Access
from pyrite.durable.collections.tables import Added, add, move

logger = logging.getLogger("pyrite.durable")

PIECE: Final = 4 << 20
"""Bytes per transaction."""
ROWS: Final = 10_000
"""Rows that are deleted per transaction."""


def apply(access: Access, job: str, added: Iterable[Added]) -> bool:
    """False if that was done before: then it changes nothing."""
    with access.reading(_of(job)) as rows:
        if _is_applied(rows, job):
            return False
    attempt = _Attempt(access, job)
    try:
        for each in added:
            attempt.add(each)
        return attempt.finish()
    finally:
        attempt.clear()


def forget(access: Access, job: str) -> None:
    """Removes the mark of a job, and what attempts to apply it have left."""
    with access.reading(_of(job)) as rows:
        attempts, is_applied = _attempts(rows, job), _is_applied(rows, job)
    for attempt in attempts:
        _delete(access, job, attempt)
    if is_applied:
        with access.writing(_of(job)) as rows:
            rows.execute("DELETE FROM applied WHERE job = ?", (job,))


class _Attempt:
    """Several processes may apply the same job at once; the first one that finishes has done it."""

    def __init__(self, access: Access, job: str) -> None:
        self._access = access
        self._job = job
        self._id: int | None = None
        self._counts: dict[tuple[CollectionKind, str], int] = {}
        """How many rows are staged for each map and list, in their order."""
        self._waiting: list[Added] = []
        self._size = 0

    def add(self, added: Added) -> None:
        self._waiting.append(added)
        is_map = added.kind == "map"
        self._size += sum(len(row[1]) if is_map else len(row) for row in added.data)
        if self._size >= PIECE:
            self._stage()

    def finish(self) -> bool:
        with self._access.writing(_of(self._job)) as rows:
            mark = "INSERT OR IGNORE INTO applied VALUES (?)"
            if not rows.execute(mark, (self._job,)).rowcount:
                return False
            for target, (kind, name) in enumerate(self._counts):
                assert self._id is not None
                move(rows, self._id, target, kind, name)
            for each in self._waiting:
                add(rows, each)
            return True

    def clear(self) -> None:
        """What is left, also by a process that is killed, is removed with the mark of the job."""
        try:
            if self._id is not None:
                _delete(self._access, self._job, self._id)
        except CollectionsUnavailable:
            logger.debug("rows of %s are left", _of(self._job), exc_info=True)

    def _stage(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        with self._access.writing(_of(self._job)) as rows:
            if self._id is None:
                made = rows.execute("INSERT INTO attempts (job) VALUES (?)", (self._job,))
                self._id = made.lastrowid
            for kind, name, data in waiting:
                before = self._counts.setdefault((kind, name), 0)
                target = list(self._counts).index((kind, name))
                self._counts[kind, name] += len(data)
                pairs = data if kind == "map" else zip(repeat(None), data)
                rows.executemany(
                    "INSERT INTO staged VALUES (?, ?, ?, ?, ?)",
                    (
                        (self._id, target, number, field, value)
                        for number, (field, value) in zip(count(before), pairs)
                    ),
                )


def _of(job: str) -> str:
    return f"the maps and lists that job '{job}' adds to"


def _is_applied(rows: Connection, job: str) -> bool:
    return rows.execute("SELECT 1 FROM applied WHERE job = ?", (job,)).fetchone() is not None


def _attempts(rows: Connection, job: str) -> list[int]:
    return [id for (id,) in rows.execute("SELECT id FROM attempts WHERE job = ?", (job,))]


def _delete(access: Access, job: str, attempt: int) -> None:
    while True:
        with access.writing(_of(job)) as rows:
            some = f"SELECT target, number FROM staged WHERE attempt = ?1 LIMIT {ROWS}"
            deleted = rows.execute(
                f"DELETE FROM staged WHERE attempt = ?1 AND (target, number) IN ({some})",
                (attempt,),
            ).rowcount
            if deleted < ROWS:
                rows.execute("DELETE FROM attempts WHERE id = ?", (attempt,))
                return
