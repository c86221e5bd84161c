"""The results that a run of a part of a workload takes from earlier runs, because their jobs are
not in the run."""

from __future__ import annotations

import os

from pyrite.errors import InvalidWorkload
from pyrite.workload.input.fingerprints.parts import may_be_of, unpack_planned
from pyrite.workload.input.plan import Plan
from pyrite.workload.storage import encoding
from pyrite.workload.storage.cleanup_queue import has_whole_result, read_result
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.result_table import Result
from pyrite.workload.storage.store import Store


def given_results(store: Store, journal: Journal, plan: Plan) -> dict[int, Result]:
    """The result of each job that is given: the one that the last run had, or else the latest; but
    if others are of the code and the arguments that the job has now, of these. Raises
    InvalidWorkload if there is none, or if its files are gone."""
    if not plan.given:
        return {}
    entries = journal.entries()
    found: dict[int, Result] = {}
    problems = []
    for job in sorted(plan.given):
        id = plan.ids[job]
        entry = entries.get(id)
        last = entry.result if entry is not None and entry.state.has_result else None
        used = last.fingerprint if last is not None else None
        result = _chosen(journal.results.all_of(id), used, plan.parts[job])
        if result is not None and is_there(store, result.segment, result.offset):
            found[job] = result
        else:
            what = "no result in" if result is None else "a result whose files are gone in"
            problems.append(_problem(store, plan, job, what))
    if problems:
        raise InvalidWorkload(problems)
    return found


def why_gone(store: Store, segment: int, offset: int) -> str:
    """Why a result is not there, as a sentence; empty if it is there."""
    path = store.segment(segment)
    try:
        if has_whole_result(path, offset):
            return ""
        changed = encoding.changed_paths(read_result(path, offset))
    except OSError:
        return "its result is gone"
    if not changed:
        return ""
    how = "changed" if os.path.exists(changed[0]) else "is gone"
    return f"the file {changed[0]}, which its result names, {how}"


def check_given(store: Store, journal: Journal, plan: Plan) -> None:
    """Raises InvalidWorkload if a run cannot be resumed, because the result of a job that is given
    is gone and a job that has not finished needs it."""
    entries = list(journal.entries().values()) if plan.given else []
    problems = [
        _problem(store, plan, job, "a result whose files are gone in")
        for job in sorted(plan.given)
        if not all(entries[below].state.has_result for below in plan.downstream[job])
        and not has_result(store, entries[job])
    ]
    if problems:
        raise InvalidWorkload(problems)


def _chosen(results: list[Result], used: bytes | None, planned: bytes) -> Result | None:
    """`results` begins with the latest; `used` is the fingerprint of the one in the last run."""
    new = unpack_planned(planned)
    fitting = [result for result in results if may_be_of(result.parts, new)] or results
    last = [result for result in fitting if result.fingerprint == used]
    return next(iter([*last, *fitting]), None)


def _problem(store: Store, plan: Plan, job: int, what: str) -> str:
    id, below = plan.ids[job], ", ".join(f"'{plan.ids[b]}'" for b in plan.downstream[job][:3])
    return (
        f"job '{id}' is not selected, but its result is needed by {below}, and it has {what} "
        f"the store '{store}'; run '{id}' first, or select it too"
    )


def has_result(store: Store, entry: Entry) -> bool:
    """Whether a job has a result that is there."""
    found = entry.result
    return found is not None and is_there(store, found.segment, found.offset)


def is_there(store: Store, segment: int, offset: int) -> bool:
    """Whether a result can be read, and the files that it names have not changed."""
    return not why_gone(store, segment, offset)
