"""The table of results in the journal: the place of each result, by the id of the job and the
fingerprint with which it ran. Results of other workloads, and of older versions of a job, stay in
the table until they are pruned.

The table of failures has the jobs whose last attempt in an earlier run had no result. It may have
overwritten what the results of the job stand for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

SCHEMA = """
create table if not exists results (
    id text not null,
    fingerprint blob not null,
    segment integer not null,
    offset integer not null,
    digest blob not null,
    seconds real not null,
    log_start integer not null,
    log_end integer not null,
    ended real not null,
    parts blob not null,
    primary key (id, fingerprint)
) without rowid;
create table if not exists failures (id text primary key, ended real not null) without rowid;
"""


class Found(NamedTuple):
    """Where a result is, with its digest, and how long its job took."""

    fingerprint: bytes
    segment: int
    offset: int
    digest: bytes
    seconds: float


class Result(NamedTuple):
    """A row of the table: the id of the job, and the fields of Found. The output of the job is in
    the log with the number of the segment. `parts` explains the fingerprint."""

    id: str
    fingerprint: bytes
    segment: int
    offset: int
    digest: bytes
    seconds: float
    log_start: int
    log_end: int
    ended: float
    parts: bytes = b""


_ROW = ", ".join("?" * len(Result._fields))


class ResultTable:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def put(self, results: Iterable[Result]) -> None:
        """A result replaces an earlier one of the same job with the same fingerprint."""
        self._database.executemany(f"insert or replace into results values ({_ROW})", results)

    def find(self, id: str, fingerprint: bytes) -> Result | None:
        """The result of this job with this fingerprint, of whatever run."""
        rows = self._database.execute(
            "select * from results where id = ? and fingerprint = ?", (id, fingerprint)
        )
        return next((Result(*row) for row in rows), None)

    def latest(self, id: str) -> Result | None:
        return next(self._from_latest(id), None)

    def all_of(self, id: str) -> list[Result]:
        """All results of this job, the latest first."""
        return list(self._from_latest(id))

    def _from_latest(self, id: str) -> Iterator[Result]:
        query = "select * from results where id = ? order by ended desc"
        return (Result(*row) for row in self._database.execute(query, (id,)))

    def put_failures(self, now: float) -> None:
        """Notes the jobs of the last run that were tried and have no result of that. A master that
        was killed has not noted how its jobs ended."""
        self._database.execute(
            "insert or replace into failures select ifnull(results_id, id), ? from jobs "
            "where attempt > 0 and state not in ('DONE', 'SKIPPED')",
            (now,),
        )

    def failed_since(self) -> set[str]:
        """The jobs that were tried in earlier runs, without a result, since they had one."""
        rows = self._database.execute(
            "select id from failures where ended > "
            "(select max(ended) from results where results.id = failures.id)"
        )
        return {id for (id,) in rows}

    def latest_seconds(self) -> dict[str, float]:
        """How long each job took that has a result, the last time."""
        rows = self._database.execute("select id, seconds, max(ended) from results group by id")
        return {id: seconds for id, seconds, _ in rows}

    def segments(self) -> dict[int, int]:
        """The number of results in each segment that has any."""
        rows = self._database.execute("select segment, count(*) from results group by segment")
        return dict(rows)
