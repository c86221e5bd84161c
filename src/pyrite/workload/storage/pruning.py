"""Removes the results from a store that its last run does not use, with their files."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.workload.input.commands.command_book import data_used_by
from pyrite.workload.input.jobs.maps import map_of
from pyrite.workload.storage.cleanup_queue import file_of_result
from pyrite.workload.storage.database import transaction
from pyrite.workload.storage.journal import Journal, explaining, files_of_segment
from pyrite.workload.storage.store import Store
from pyrite.workload.system.numbers import is_whole

_UNUSED = """
with ranked as (
    select id, fingerprint, segment, offset,
        row_number() over (partition by id order by ended desc) as place
    from results
)
select distinct ranked.id, ranked.fingerprint, ranked.segment, ranked.offset
from ranked left join jobs on ifnull(jobs.results_id, jobs.id) = ranked.id
where place > ? and (
    jobs.id is null
    or (jobs.state in ('DONE', 'SKIPPED') and jobs.fingerprint != ranked.fingerprint)
)
"""
"""The results of jobs that the plan does not have, and other results than the one that a finished
job has. If a job has not finished, the plan may need any of its results when it is resumed."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many results were removed, and how many bytes their files had."""

    results: int
    bytes: int


def prune(store: Store, *, keep: int = 0, dry_run: bool = False) -> Pruned:
    if not is_whole(keep, least=0):
        raise PyriteError(
            "keep must be the number of results of each job that stay, 0 or more; got "
            f"{shorten(keep)}"
        )
    store.check_exists()
    with store.locked(), closing(Journal(store)) as journal, explaining(store):
        return _prune(store, journal, keep, dry_run=dry_run)


def _prune(store: Store, journal: Journal, keep: int, *, dry_run: bool) -> Pruned:
    journal.catch_up()
    database = journal.database
    database.execute("create index if not exists jobs_by_id on jobs (ifnull(results_id, id))")
    try:
        unused = database.execute(_UNUSED, (keep,)).fetchall()
    finally:
        database.execute("drop index jobs_by_id")
    left_out = store.read_plan(journal.plan).left_out if journal.plan else ()
    # The results of jobs that the plan leaves out may be needed by the next run.
    unused = [row for row in unused if map_of(row[0]) not in left_out]
    files = [*_files(store, journal, unused), *_unused_data(store, journal.plan)]
    pruned = Pruned(len(unused), sum(map(_size, files)))
    if not dry_run:
        with store.explaining("write to"):
            with transaction(database):  # first, so that no result is known whose file is gone
                database.executemany(
                    "delete from results where id = ? and fingerprint = ?",
                    [row[:2] for row in unused],
                )
                database.execute("delete from failures where id not in (select id from results)")
            for file in files:
                file.unlink(missing_ok=True)
            journal.drop_unused_segments()
            store.drop_plans(but=journal.plan)
            database.execute("vacuum")
    return pruned


def _files(store: Store, journal: Journal, unused: list[tuple[str, bytes, int, int]]) -> list[Path]:
    """The files that only unused results need: whole segments with their logs, and the large
    results in other segments."""
    left = journal.results.segments()
    for _, _, segment, _ in unused:
        left[segment] -= 1
    whole = journal.unused_segments(left)
    files = {file for number in whole for file in files_of_segment(store, number)}
    for _, _, segment, offset in unused:
        if left[segment] and (file := file_of_result(store.segment(segment), offset)) is not None:
            files.add(file)
    return sorted(files | _orphans(store, journal))


def _orphans(store: Store, journal: Journal) -> set[Path]:
    """The files of large results that nothing refers to: the worker died before it posted the
    result, or the same job ran again later."""
    files = {path for path in (store.folder / "segments").iterdir() if path.suffix != ".segment"}
    segments = {path.name.partition("-")[0] for path in files}
    places = journal.database.execute(
        "select segment, offset from results union "
        "select segment, offset from jobs where offset is not null"
    )
    for segment, offset in places if files else ():
        path = store.segment(segment)
        if path.stem in segments and (file := file_of_result(path, offset)) is not None:
            files.discard(file)
    return files


def _unused_data(store: Store, plan: int) -> list[Path]:
    """The large arguments that the jobs of the plan do not have."""
    used = data_used_by(store.plan(plan))
    found = store.large_data.iterdir() if store.large_data.is_dir() else ()
    return sorted(path for path in found if path.name not in used)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
