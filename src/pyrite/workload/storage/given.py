"""The results that a run of a part of a workload takes from earlier runs, because their jobs are
not in the run."""

from __future__ import annotations

import os

from pyrite.errors import InvalidWorkload
from pyrite.workload.input.plan import Plan
from pyrite.workload.storage import encoding
from pyrite.workload.storage.cleanup_queue import has_whole_result, read_result
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.result_table import Result
from pyrite.workload.storage.store import Store


def given_results(store: Store, journal: Journal, plan: Plan) -> dict[int, Result]:
    """The result of each job that is given: the one that the last run had, or else the latest.
    Raises InvalidWorkload if there is none, or if its files are gone."""
    if not plan.given:
        return {}
    entries = journal.entries()
    found: dict[int, Result] = {}
    problems = []
    for job in sorted(plan.given):
        id = plan.ids[job]
        entry = entries.get(id)
        used = entry.fingerprint if entry is not None and entry.state.has_result else None
        result = journal.result(id, used) if used is not None else None
        result = result or journal.latest_result(id)
        if result is not None and is_there(store, result.segment, result.offset):
            found[job] = result
            continue
        what = "no result in" if result is None else "a result whose files are gone in"
        below = ", ".join(f"'{plan.ids[job]}'" for job in plan.downstream[job][:3])
        problems.append(
            f"job '{id}' is not selected, but its result is needed by {below}, and it has {what} "
            f"the store '{store}'; run '{id}' first, or select it too"
        )
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


def is_there(store: Store, segment: int, offset: int) -> bool:
    """Whether a result can be read, and the files that it names have not changed."""
    return not why_gone(store, segment, offset)
