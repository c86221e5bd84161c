"""The journal: the state of each job in SQLite. The master writes it in batches; any process can
read it (`journal_reading`). The results are in a table of their own (`result_table`), which
outlives the run.

The segments are ahead of the journal: a job has finished as soon as its record is in a segment. If
a master died before it wrote its last batch, `catch_up` adds these records to the journal.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pyrite.errors import RunBroken
from pyrite.system.private import open_private
from pyrite.workload.input.branches import extended
from pyrite.workload.input.fingerprints import SIZE
from pyrite.workload.input.fingerprints.parts import with_run
from pyrite.workload.input.plan import Plan
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import files_of
from pyrite.workload.storage.database import open_database, transaction
from pyrite.workload.storage.edited import why_edited
from pyrite.workload.storage.entries import Entry, result_of, with_result
from pyrite.workload.storage.journal_reading import (
    damaged,
    entries_in,
    extensions_in,
    plan_in,
    unwritten,
)
from pyrite.workload.storage.result_table import SCHEMA, Result, ResultTable
from pyrite.workload.storage.store import FORMAT, Store

NOTHING_GIVEN: Mapping[int, Result] = {}

JOURNAL_SCHEMA = f"""
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

_COLUMNS = (*Entry._fields[:-1], "fingerprint")
_UPDATE = (
    f"update jobs set ({', '.join(_COLUMNS)}) = ({', '.join('?' * len(_COLUMNS))}) where number = ?"
)


class Journal:
    """The journal for writing. Only the master that holds the lock of the store may use it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with explaining(store):
            script = f"begin immediate; {JOURNAL_SCHEMA} commit;"
            os.close(open_private(store.journal, os.O_RDWR))
            _check_format(store)
            self._use(open_database(store.journal, script))

    def _use(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.results = ResultTable(database)

    def close(self) -> None:
        """Moves the content of the WAL file into the database file if possible, and closes it."""
        try:
            self.database.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.Error:
            pass
        self.database.close()

    def entries(self) -> dict[str, Entry]:
        """The entries of all jobs by id, in the order of the workload."""
        return dict(entries_in(self.database))

    def new_segment(self, worker: str) -> int:
        """The number of a new segment, and of its log, that only this worker writes to."""
        with explaining(self._store), transaction(self.database):
            number = self.database.execute(
                "insert into segments (worker, scanned) values (?, 0)", (worker,)
            ).lastrowid
        assert number is not None
        return number

    def catch_up(self) -> None:
        """Adds the records of the segments that the previous master had not written to the
        journal."""
        with explaining(self._store), transaction(self.database):
            changed, scanned = unwritten(self.database, self._store)
            if changed:
                self._settle(changed)
            self._set_scanned(scanned)

    def _settle(self, changed: dict[int, Entry]) -> None:
        """Writes the entries of jobs that ended after the last batch, and their results."""
        number = self.plan
        plan = extended(self._store.read_plan(number), self.extensions())
        ids = self._results_ids()
        results = []
        for job, entry in changed.items():
            if entry.state is not JobState.FAILED:
                why = why_edited(self._store, number, entry.result)
                parts = with_run(plan.parts[job], disturbed=why) if why else b""
                if job in plan.files:
                    changed[job], parts = _unsettled(entry, plan.parts[job])
                results.append(result_of(ids[job], changed[job], parts))
        self._update(changed.items())
        self.results.put(results)

    @property
    def plan(self) -> int:
        """The number of the plan that the entries belong to; 0 if there is no plan yet."""
        return plan_in(self.database)

    def begin(self, number: int, plan: Plan, given: Mapping[int, Result] = NOTHING_GIVEN) -> None:
        """Starts a run of this plan, in one transaction. `given` has the earlier results of the
        jobs that do not run."""
        with explaining(self._store), transaction(self.database):
            self.results.put_failures(time.time())
            self.database.execute("delete from jobs")
            self.database.execute("delete from extensions")
            self.database.executemany(
                "insert into jobs (number, id, state, attempt) values (?, ?, ?, 0)",
                _first_states(plan),
            )
            skipped = Entry(JobState.SKIPPED)
            self._update([(job, with_result(skipped, result)) for job, result in given.items()])
            self.database.execute("delete from run")
            self.database.execute("insert into run (plan) values (?)", (number,))
        self.drop_unused(but=number)

    def drop_unused(self, *, but: int) -> None:
        """Removes the segments that nobody uses, and all plans but one."""
        self.drop_unused_segments()
        self._store.drop_plans(but=but)

    def extend(self, map: int, first: int, ids: Sequence[tuple[str, str]]) -> None:
        """Adds the branches of a map, in one transaction: their ids, and the ids under which their
        results are kept. Their numbers begin with `first`."""
        with explaining(self._store), transaction(self.database):
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
        return extensions_in(self.database)

    def retract(self, first: int) -> None:
        """Removes all branches of all maps. Their numbers begin with `first`."""
        with explaining(self._store), transaction(self.database):
            self.database.execute("delete from extensions")
            self.database.execute("delete from jobs where number >= ?", (first,))

    def _results_ids(self) -> list[str]:
        rows = self.database.execute("select ifnull(results_id, id) from jobs order by number")
        return [id for (id,) in rows]

    def write(
        self,
        entries: Iterable[tuple[int, Entry]],
        scanned: Iterable[tuple[int, int]],
        results: Iterable[Result] = (),
    ) -> None:
        """Writes one batch in one transaction: the changed jobs, the position up to which each
        segment was read, and the new results."""
        with explaining(self._store), transaction(self.database):
            self._update(entries)
            self.results.put(results)
            self._set_scanned(scanned)

    def _update(self, entries: Iterable[tuple[int, Entry]]) -> None:
        rows = [
            (*entry[:-1], entry.result and entry.result.fingerprint, number)
            for number, entry in entries
        ]
        self.database.executemany(_UPDATE, rows)

    def _set_scanned(self, scanned: Iterable[tuple[int, int]]) -> None:
        self.database.executemany(
            "update segments set scanned = ? where number = ?",
            [(position, number) for number, position in scanned],
        )

    def drop_unused_segments(self) -> None:
        """Removes the unused segments. The database row is deleted last, so that a removal that was
        interrupted is repeated the next time."""
        for number in self.unused_segments(self.results.segments()):
            for path in files_of_segment(self._store, number):
                path.unlink(missing_ok=True)
            with explaining(self._store), transaction(self.database):
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


def _first_states(plan: Plan) -> Iterator[tuple[int, str, str]]:
    for number, (id, above) in enumerate(zip(plan.ids, plan.upstream)):
        yield number, id, "WAITING" if above else "READY"


def _unsettled(entry: Entry, planned: bytes) -> tuple[Entry, bytes]:
    """The entry and the packed parts of a job with files whose end no master has seen. Its record
    has the fingerprint from before it ran, and nobody has looked at what it wrote. So it gets a
    random one, and the job runs again in the next run."""
    why = "its master was killed before it looked at the files that the job wrote"
    assert entry.result is not None
    result = entry.result._replace(fingerprint=os.urandom(SIZE))
    return entry._replace(result=result), with_run(planned, disturbed=(why,))


def _check_format(store: Store) -> None:
    with closing(sqlite3.connect(store.journal, timeout=30)) as database:
        check_format(store, database)


def check_format(store: Store, database: sqlite3.Connection) -> None:
    (found,) = database.execute("pragma user_version").fetchone()
    (tables,) = database.execute("select count(*) from sqlite_master").fetchone()
    if tables and found != FORMAT:
        raise store.of_another_version()


@contextmanager
def explaining(store: Store) -> Iterator[None]:
    """Turns the errors of SQLite into a full sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise RunBroken(
            f"cannot write to the store '{store}': {error}; what was recorded is kept, and the run "
            "can be resumed"
        ) from error
    except sqlite3.DatabaseError as error:
        raise damaged(store.journal, error) from error
