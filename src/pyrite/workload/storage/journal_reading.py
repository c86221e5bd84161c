"""Reads the journal: the entries of the jobs, together with what is only in the segments yet."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyrite.errors import PyriteError
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record, end_of, read_error, read_records
from pyrite.workload.storage.entries import Entry, with_record
from pyrite.workload.storage.result_table import Found
from pyrite.workload.storage.store import Store

_OWN = Entry._fields[:-1]  # the fields that are in the table of jobs; the last one is the result
_ENTRIES = f"""
select jobs.id, {", ".join(f"jobs.{name}" for name in _OWN)},
    results.fingerprint, results.segment, results.offset, results.digest, results.seconds
from jobs left join results
    on results.id = ifnull(jobs.results_id, jobs.id) and results.fingerprint = jobs.fingerprint
"""


def read_plan_number(store: Store) -> int:
    store.check_exists()
    with reading(store.journal) as database:
        return plan_in(database)


def plan_in(database: sqlite3.Connection) -> int:
    row = database.execute("select plan from run").fetchone()
    return int(row[0]) if row is not None else 0


def read_extensions(store: Store) -> list[tuple[int, int]]:
    """The maps whose branches are known, and the number of these, for reading only."""
    with reading(store.journal) as database:
        return extensions_in(database)


def extensions_in(database: sqlite3.Connection) -> list[tuple[int, int]]:
    return database.execute("select map, branches from extensions order by rowid").fetchall()


def read_entries(store: Store, *, was_cut_short: bool = False) -> tuple[int, dict[str, Entry]]:
    """The number of the plan and the entries of its jobs, for reading only.

    This works even if the disk is full or read-only. If the run was killed (`was_cut_short`), the
    last records may be in the segments only, so these are read too.
    """
    store.check_exists()
    with reading(store.journal) as database:
        entries = dict(entries_in(database))
        if was_cut_short:
            ids = list(entries)
            entries.update(
                (ids[number], entry) for number, entry in unwritten(database, store)[0].items()
            )
        return plan_in(database), entries


def read_entry(store: Store, number: int) -> Entry:
    """The entry of one job, as the journal has it."""
    with reading(store.journal) as database:
        return next(entry for _, entry in entries_in(database, f"where number = {number:d}"))


def unwritten(
    database: sqlite3.Connection, store: Store
) -> tuple[dict[int, Entry], list[tuple[int, int]]]:
    """The entries that are newer in the segments than in the journal, and the end position of each
    segment. Records of another plan do not count: their numbers are those of other jobs."""
    entries = [entry for _, entry in entries_in(database)]
    plan = plan_in(database)
    changed: dict[int, Entry] = {}
    positions = []
    for number, worker, scanned in database.execute(
        "select number, worker, scanned from segments order by number"
    ).fetchall():
        path = store.segment(number)
        if not path.exists():
            continue
        for record in read_records(path, scanned):
            positions.append((number, end_of(record)))
            if record.plan == plan and not _is_older(record, entries[record.job]):
                error = None if record.succeeded else read_error(path, record.offset)[0]
                entry = with_record(
                    entries[record.job], record, segment=number, worker=worker, error=error
                )
                entries[record.job] = changed[record.job] = entry
    return changed, positions


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(
            sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=30)
        ) as database:
            database.execute("select count(*) from jobs").fetchone()
            yield database
        return
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            raise PyriteError(
                f"the run in '{path.parent}' is still starting; try again in a moment"
            ) from None
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from error
    # To read the WAL file, SQLite must write a shared-memory file next to it. If the folder cannot
    # be written to, read copies of both files in another folder.
    with tempfile.TemporaryDirectory(prefix="pyrite-") as folder:
        for name in (path.name, f"{path.name}-wal"):
            if (path.parent / name).exists():
                shutil.copyfile(path.parent / name, Path(folder) / name)
        with closing(sqlite3.connect(Path(folder) / path.name)) as database:
            yield database


def entries_in(
    database: sqlite3.Connection, which: str = "order by number"
) -> Iterator[tuple[str, Entry]]:
    states = {state.value: state for state in JobState}
    fresh = {state: Entry(state) for state in (JobState.WAITING, JobState.READY)}
    for id, state, *rest in database.execute(_ENTRIES + which):
        own, result = rest[: len(_OWN) - 1], rest[len(_OWN) - 1 :]
        found = Found(*result) if result[0] is not None else None
        is_fresh = rest[0] == 0 and found is None and states[state] in fresh
        yield id, fresh[states[state]] if is_fresh else Entry._make((states[state], *own, found))


def _is_older(record: Record, entry: Entry) -> bool:
    """Whether the journal already has the end of this attempt, or a later attempt."""
    return record.attempt < entry.attempt or (
        record.attempt == entry.attempt and entry.state.has_ended
    )


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def damaged(path: Path, error: sqlite3.DatabaseError) -> PyriteError:
    return PyriteError(
        f"the store '{path.parent}' is damaged: its file {path.name} cannot be read ({error}); run "
        "the workload again with another folder as store="
    )
