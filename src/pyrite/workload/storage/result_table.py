"""The table of results in the journal: the place of each result, by the id of the job and the
fingerprint with which it ran. Results of other workloads, and of older versions of a job, stay in
the table until they are pruned."""

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
