"""The table of results in the journal: the place of each result, by the id of the job and the
fingerprint with which it ran. Results of other workloads, and of older versions of a job, stay in
the table until they are pruned.

The table of failures has the jobs whose last attempt in an earlier run had no result. It may have
overwritten what the results of the job stand for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
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


class Result(NamedTuple):
    """Where a result is. The output of its job is in the log with the number of its segment.
    `parts` explains the fingerprint."""

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


def put_results(database: sqlite3.Connection, results: Iterable[Result]) -> None:
    """A result replaces an earlier one of the same job with the same fingerprint."""
    database.executemany(f"insert or replace into results values ({_ROW})", results)


def find_result(database: sqlite3.Connection, id: str, fingerprint: bytes) -> Result | None:
    row = database.execute(
        "select * from results where id = ? and fingerprint = ?", (id, fingerprint)
    ).fetchone()
    return None if row is None else Result(*row)


def latest_result(database: sqlite3.Connection, id: str) -> Result | None:
    row = database.execute(
        "select * from results where id = ? order by ended desc limit 1", (id,)
    ).fetchone()
    return None if row is None else Result(*row)


def results_of(database: sqlite3.Connection, id: str) -> list[Result]:
    """All results of a job, the latest first."""
    rows = database.execute("select * from results where id = ? order by ended desc", (id,))
    return [Result(*row) for row in rows]


def put_failures(database: sqlite3.Connection, now: float) -> None:
    """Notes the jobs of the last run that were tried and have no result of that. A master that was
    killed has not noted how its jobs ended."""
    database.execute(
        "insert or replace into failures select ifnull(results_id, id), ? from jobs "
        "where attempt > 0 and state not in ('DONE', 'SKIPPED')",
        (now,),
    )


def failed_since(database: sqlite3.Connection) -> set[str]:
    """The jobs with an attempt without a result that is later than all their results."""
    return {
        id
        for (id,) in database.execute(
            "select id from failures where ended > "
            "(select max(ended) from results where results.id = failures.id)"
        )
    }


def latest_seconds(database: sqlite3.Connection) -> dict[str, float]:
    """How long each job took that has a result, the last time."""
    return {
        id: seconds
        for id, seconds, _ in database.execute(
            "select id, seconds, max(ended) from results group by id"
        )
    }


def used_segments(database: sqlite3.Connection) -> dict[int, int]:
    """The number of results in each segment that has any."""
    return dict(database.execute("select segment, count(*) from results group by segment"))
