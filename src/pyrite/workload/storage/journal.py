"""The journal: the state of each job in SQLite. The master writes it in batches; any process can
read it.

The results are in a table of their own (`result_table`), which outlives the run.

The segments are ahead of the journal: a job has finished as soon as its record is in a segment. If
a master died before it wrote its last batch, `catch_up` adds these records to the journal.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from pyrite.errors import PyriteError, RunBroken
from pyrite.workload.input.plan import Plan
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record, end_of, files_of, read_error, read_records
from pyrite.workload.storage.database import open_database, transaction
from pyrite.workload.storage.private import open_private
from pyrite.workload.storage.result_table import (
    SCHEMA,
    Result,
    find_result,
    latest_result,
    latest_seconds,
    put_results,
    used_segments,
)
from pyrite.workload.storage.store import FORMAT, Store


class Entry(NamedTuple):
    """The state of a job and its last attempt. The fields from `fingerprint` on describe its
    result, which may be from an earlier run; the last four are in the table of results."""

    state: JobState = JobState.WAITING
    attempt: int = 0
    worker: str | None = None
    started: float | None = None
    ended: float | None = None
    error: str | None = None
    segment: int | None = None
    offset: int | None = None  # of the record of the last attempt; None if it wrote none
    log_start: int = 0
    log_end: int = 0
    fingerprint: bytes | None = None
    result_segment: int | None = None
    result_offset: int | None = None
    result_digest: bytes | None = None
    result_seconds: float | None = None


FRESH = Entry()
_OWN = Entry._fields.index("fingerprint") + 1
_COLUMNS = ", ".join(Entry._fields[:_OWN])
_ENTRIES = f"""
select jobs.id, {", ".join(f"jobs.{name}" for name in Entry._fields[:_OWN])},
    results.segment, results.offset, results.digest, results.seconds
from jobs left join results
    on results.id = ifnull(jobs.results_id, jobs.id) and results.fingerprint = jobs.fingerprint
order by number
"""

_SCHEMA = f"""
create table if not exists jobs (
    number integer primary key,
    id text not null,
    state text not null,
    attempt integer not null,
    worker text, started real, ended real, error text,
    segment integer, offset integer, log_start integer, log_end integer,
    fingerprint blob,
    results_id text -- if its results are kept under another id
);
create table if not exists run (plan integer not null);
create table if not exists extensions (map integer not null, branches integer not null);
create table if not exists segments (
    number integer primary key autoincrement, worker text not null, scanned integer not null
);
{SCHEMA}
pragma user_version = {FORMAT};
"""


def with_record(
    entry: Entry,
    record: Record,
    *,
    segment: int,
    worker: str,
    error: str | None = None,
) -> Entry:
    """The entry of a job after the attempt that the record describes."""
    if not record.succeeded:
        result = entry[10:]
    else:
        result = (
            record.fingerprint,
            segment,
            record.offset,
            record.result_digest,
            record.ended - record.started,
        )
    state = JobState.DONE if record.succeeded else JobState.FAILED
    return Entry(
        JobState.WAITING if record.has_elements else state,  # a map waits for its branches
        record.attempt,
        worker,
        record.started,
        record.ended,
        error,
        segment,
        record.offset,
        record.log_start,
        record.log_end,
        *result,
    )


def with_result(entry: Entry, result: Result) -> Entry:
    """The entry of a job that has a result of an earlier run."""
    return entry._replace(
        segment=result.segment,
        log_start=result.log_start,
        log_end=result.log_end,
        fingerprint=result.fingerprint,
        result_segment=result.segment,
        result_offset=result.offset,
        result_digest=result.digest,
        result_seconds=result.seconds,
    )


def result_of(id: str, entry: Entry, parts: bytes = b"") -> Result:
    """The result of a job that is done."""
    assert entry.fingerprint is not None
    assert entry.result_segment is not None
    assert entry.result_offset is not None
    assert entry.result_digest is not None
    assert entry.result_seconds is not None
    assert entry.ended is not None
    return Result(
        id,
        entry.fingerprint,
        entry.result_segment,
        entry.result_offset,
        entry.result_digest,
        entry.result_seconds,
        entry.log_start,
        entry.log_end,
        entry.ended,
        parts,
    )


class Journal:
    """The journal for writing. Only the master that holds the lock of the store may use it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with _explaining(store):
            script = f"begin immediate; {_SCHEMA} commit;"
            os.close(open_private(store.journal, os.O_RDWR))
            _check_format(store)
            self.database = open_database(store.journal, script)

    def close(self) -> None:
        """Moves the content of the WAL file into the database file if possible, and closes it."""
        try:
            self.database.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.Error:
            pass
        self.database.close()

    def entries(self) -> dict[str, Entry]:
        """The entries of all jobs by id, in the order of the workload."""
        return dict(_entries(self.database))

    def new_segment(self, worker: str) -> int:
        """The number of a new segment, and of its log, that only this worker writes to."""
        with _explaining(self._store), transaction(self.database):
            number = self.database.execute(
                "insert into segments (worker, scanned) values (?, 0)", (worker,)
            ).lastrowid
        assert number is not None
        return number

    def catch_up(self) -> None:
        """Adds the records of the segments that the previous master had not written to the
        journal."""
        with _explaining(self._store), transaction(self.database):
            changed, scanned = _unwritten(self.database, self._store)
            ids = self._results_ids() if changed else []
            self._update(changed.items())
            put_results(
                self.database,
                [
                    result_of(ids[job], entry)
                    for job, entry in changed.items()
                    if entry.state is not JobState.FAILED
                ],
            )
            self._set_scanned(scanned)

    @property
    def plan(self) -> int:
        """The number of the plan that the entries belong to; 0 if there is no plan yet."""
        return _plan_number(self.database)

    def begin(self, number: int, plan: Plan) -> None:
        """Starts a run of this plan, in one transaction."""
        with _explaining(self._store), transaction(self.database):
            self.database.execute("delete from jobs")
            self.database.execute("delete from extensions")
            self.database.executemany(
                "insert into jobs (number, id, state, attempt) values (?, ?, ?, 0)",
                _first_states(plan),
            )
            self.database.execute("delete from run")
            self.database.execute("insert into run (plan) values (?)", (number,))
        self.drop_unused_segments()
        self._store.drop_plans(but=number)

    def extend(self, map: int, first: int, ids: Sequence[tuple[str, str]]) -> None:
        """Adds the branches of a map, in one transaction: their ids, and the ids under which their
        results are kept. Their numbers begin with `first`."""
        with _explaining(self._store), transaction(self.database):
            self.database.execute(
                "insert into extensions (map, branches) values (?, ?)", (map, len(ids))
            )
            self.database.executemany(
                "insert into jobs (number, id, state, attempt, results_id) "
                "values (?, ?, 'READY', 0, ?)",
                ((number, *both) for number, both in enumerate(ids, first)),
            )

    def extensions(self) -> list[tuple[int, int]]:
        """The maps whose branches are known, and the number of these, in the order of
        `extend`."""
        return _extensions(self.database)

    def retract(self, first: int) -> None:
        """Removes all branches of all maps. Their numbers begin with `first`."""
        with _explaining(self._store), transaction(self.database):
            self.database.execute("delete from extensions")
            self.database.execute("delete from jobs where number >= ?", (first,))

    def _results_ids(self) -> list[str]:
        rows = self.database.execute("select ifnull(results_id, id) from jobs order by number")
        return [id for (id,) in rows]

    def result(self, id: str, fingerprint: bytes) -> Result | None:
        """The result of this job with this fingerprint, of whatever run."""
        return find_result(self.database, id, fingerprint)

    def latest_result(self, id: str) -> Result | None:
        return latest_result(self.database, id)

    def latest_seconds(self) -> dict[str, float]:
        """The duration of each job that has a result, the last time that it ran."""
        return latest_seconds(self.database)

    def write(
        self,
        entries: Iterable[tuple[int, Entry]],
        scanned: Iterable[tuple[int, int]],
        results: Iterable[Result] = (),
    ) -> None:
        """Writes one batch in one transaction: the changed jobs, the position up to which each
        segment was read, and the new results."""
        with _explaining(self._store), transaction(self.database):
            self._update(entries)
            put_results(self.database, results)
            self._set_scanned(scanned)

    def _update(self, entries: Iterable[tuple[int, Entry]]) -> None:
        self.database.executemany(
            f"update jobs set ({_COLUMNS}) = ({', '.join('?' * _OWN)}) where number = ?",
            [(*entry[:_OWN], number) for number, entry in entries],
        )

    def _set_scanned(self, scanned: Iterable[tuple[int, int]]) -> None:
        self.database.executemany(
            "update segments set scanned = ? where number = ?",
            [(position, number) for number, position in scanned],
        )

    def drop_unused_segments(self) -> None:
        """Removes the unused segments. The database row is deleted last, so that a removal that was
        interrupted is repeated the next time."""
        for number in self.unused_segments(used_segments(self.database)):
            for path in files_of_segment(self._store, number):
                path.unlink(missing_ok=True)
            with _explaining(self._store), transaction(self.database):
                self.database.execute("delete from segments where number = ?", (number,))

    def unused_segments(self, results: Mapping[int, int]) -> list[int]:
        """The segments without results, given the number of results in each, and without the output
        or the error of a job of this run."""
        of_jobs = {n for (n,) in self.database.execute("select distinct segment from jobs")}
        numbers = [n for (n,) in self.database.execute("select number from segments")]
        return [n for n in numbers if not results.get(n) and n not in of_jobs]


def files_of_segment(store: Store, number: int) -> list[Path]:
    """The files that belong to a segment and exist: those of large results, its log, and last the
    segment itself."""
    path = store.segment(number)
    large = sorted(files_of(path)) if path.exists() else []
    files = [*large, store.log(number), path]
    return [file for file in files if file.exists()]


def read_plan_number(store: Store) -> int:
    store.check_exists()
    with _reading(store.journal) as database:
        return _plan_number(database)


def _plan_number(database: sqlite3.Connection) -> int:
    row = database.execute("select plan from run").fetchone()
    return int(row[0]) if row is not None else 0


def read_extensions(store: Store) -> list[tuple[int, int]]:
    """The maps whose branches are known, and the number of these, for reading only."""
    with _reading(store.journal) as database:
        return _extensions(database)


def _extensions(database: sqlite3.Connection) -> list[tuple[int, int]]:
    return database.execute("select map, branches from extensions order by rowid").fetchall()


def read_entries(store: Store, *, was_cut_short: bool = False) -> tuple[int, dict[str, Entry]]:
    """The number of the plan and the entries of its jobs, for reading only.

    This works even if the disk is full or read-only. If the run was killed (`was_cut_short`), the
    last records may be in the segments only, so these are read too.
    """
    store.check_exists()
    with _reading(store.journal) as database:
        entries = dict(_entries(database))
        if was_cut_short:
            ids = list(entries)
            entries.update(
                (ids[number], entry) for number, entry in _unwritten(database, store)[0].items()
            )
        return _plan_number(database), entries


def _unwritten(
    database: sqlite3.Connection, store: Store
) -> tuple[dict[int, Entry], list[tuple[int, int]]]:
    """The entries that are newer in the segments than in the journal, and the end position of each
    segment. Records of another plan do not count: their numbers are those of other jobs."""
    entries = [entry for _, entry in _entries(database)]
    plan = _plan_number(database)
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
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
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
        raise _damaged(path, error) from error
    # To read the WAL file, SQLite must write a shared-memory file next to it. If the folder cannot
    # be written to, read copies of both files in another folder.
    with tempfile.TemporaryDirectory(prefix="pyrite-") as folder:
        for name in (path.name, f"{path.name}-wal"):
            if (path.parent / name).exists():
                shutil.copyfile(path.parent / name, Path(folder) / name)
        with closing(sqlite3.connect(Path(folder) / path.name)) as database:
            yield database


def _entries(database: sqlite3.Connection) -> Iterator[tuple[str, Entry]]:
    states = {state.value: state for state in JobState}
    fresh = {state: Entry(state) for state in (JobState.WAITING, JobState.READY)}
    for id, state, *rest in database.execute(_ENTRIES):
        is_fresh = rest[0] == 0 and rest[9] is None and states[state] in fresh
        yield id, fresh[states[state]] if is_fresh else Entry(states[state], *rest)


def _first_states(plan: Plan) -> Iterator[tuple[int, str, str]]:
    for number, (id, above) in enumerate(zip(plan.ids, plan.upstream)):
        yield number, id, "WAITING" if above else "READY"


def _is_older(record: Record, entry: Entry) -> bool:
    """Whether the journal already has the end of this attempt, or a later attempt."""
    return record.attempt < entry.attempt or (
        record.attempt == entry.attempt and entry.state.has_ended
    )


def _check_format(store: Store) -> None:
    with closing(sqlite3.connect(store.journal, timeout=30)) as database:
        (found,) = database.execute("pragma user_version").fetchone()
        (tables,) = database.execute("select count(*) from sqlite_master").fetchone()
    if tables and found != FORMAT:
        raise PyriteError(
            f"the store '{store}' was written by another version of Pyrite; run the workload "
            "with a new folder as store="
        )


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


@contextmanager
def _explaining(store: Store) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise RunBroken(
            f"cannot write to the store '{store}': {error}; what was recorded is kept, and the run "
            "can be resumed"
        ) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(store.journal, error) from error


def _damaged(path: Path, error: sqlite3.DatabaseError) -> PyriteError:
    return PyriteError(
        f"the store '{path.parent}' is damaged: its file {path.name} cannot be read ({error}); run "
        "the workload again with another folder as store="
    )
