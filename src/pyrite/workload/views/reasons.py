"""Why the jobs of a run ran, did not run, or will run: a sentence for each, without its subject's
name. The forecast says it before a run; here it is read from what the run has left in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyrite.workload.input.fingerprints.parts import Parts, differences, unpack_planned
from pyrite.workload.input.plan import Plan
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.journal_reading import reading
from pyrite.workload.storage.result_table import Result, ResultTable
from pyrite.workload.storage.store import Store

UPSTREAM_NAMED = 3


class Reasons:
    """Finds each sentence once: what a job has left does not change as long as its state does
    not."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[tuple[str, JobState, int], str | None] = {}

    def of(
        self, plan: Plan, entries: Mapping[str, Entry], *, is_rerun: bool
    ) -> dict[str, str | None]:
        """By job id."""
        keys = {id: (id, entry.state, entry.attempt) for id, entry in entries.items()}
        missing = {id for id, key in keys.items() if key not in self._found}
        if missing:
            with reading(self._store.journal) as database:
                results = ResultTable(database)
                kept_as = dict(
                    database.execute(
                        "select id, results_id from jobs where results_id is not null"
                    ).fetchall()
                )
                for number, id in enumerate(plan.ids[: len(entries)]):
                    if id in missing:
                        earlier = results.all_of(kept_as.get(id, id))
                        self._found[keys[id]] = _reason(
                            plan, number, entries, earlier, is_rerun=is_rerun
                        )
        return {id: self._found.get(key) for id, key in keys.items()}


def _reason(
    plan: Plan, job: int, entries: Mapping[str, Entry], results: list[Result], *, is_rerun: bool
) -> str | None:
    entry = entries[plan.ids[job]]
    match entry.state:
        case _ if job in plan.given:
            return "it is not selected, and its earlier result is used"
        case JobState.SKIPPED:
            return "it is up to date"
        case JobState.BLOCKED:
            return _blocked(plan, job, entries)
        case JobState.CANCELLED if not entry.attempt:
            return "the run was cancelled, or stopped after another job failed"
        case _ if job in plan.maps:
            return None  # its branches have reasons of their own
        case _ if is_rerun:
            return "the run was started with rerun"
        case JobState.DONE:
            return _why_done(entry, results)
        case _:
            return _why_not_done(plan, job, entries, results)


def _blocked(plan: Plan, job: int, entries: Mapping[str, Entry]) -> str:
    above = [plan.ids[u] for u in plan.upstream[job]]
    stopped = [id for id in above if id in entries and _did_not_succeed(entries[id].state)]
    named = ", ".join(stopped[:UPSTREAM_NAMED])
    more = f" and {len(stopped) - UPSTREAM_NAMED} more" if len(stopped) > UPSTREAM_NAMED else ""
    return f"its upstream {'job' if len(stopped) == 1 else 'jobs'} {named}{more} did not succeed"


def _did_not_succeed(state: JobState) -> bool:
    return state.has_ended and not state.has_result


def _why_done(entry: Entry, results: list[Result]) -> str:
    used = entry.result.fingerprint if entry.result is not None else None
    new = next((result for result in results if result.fingerprint == used), None)
    earlier = [result for result in results if new is None or result.ended < new.ended]
    if not earlier:
        return "it had no earlier result"
    if new is None or not new.parts:
        return "something that it uses has changed"
    return _changes(earlier, Parts.unpack(new.parts))


def _why_not_done(
    plan: Plan, job: int, entries: Mapping[str, Entry], results: list[Result]
) -> str | None:
    """What is known of a job without a result of this run is what was planned."""
    if not results:
        return "it has no earlier result"
    above = [plan.ids[u] for u in plan.upstream[job]]
    ran = [id for id in above if id in entries and entries[id].state is not JobState.SKIPPED]
    found = [] if plan.ids[job] not in entries else _own_changes(plan, job, results)
    found += [f"its upstream job {id} ran" for id in ran[:UPSTREAM_NAMED]]
    if len(ran) > UPSTREAM_NAMED:
        found.append(f"{len(ran) - UPSTREAM_NAMED} more of its upstream jobs ran")
    if not found and entries[plan.ids[job]].state in (JobState.WAITING, JobState.READY):
        return None
    return "; ".join(found) or "a file that it uses has changed, or its last attempt failed"


def _own_changes(plan: Plan, job: int, results: list[Result]) -> list[str]:
    new = unpack_planned(plan.parts[job])
    known = [
        replace(Parts.unpack(result.parts), files={}, upstream={}, made=())
        for result in results
        if result.parts
    ]
    return min((differences(old, new) for old in known), key=len, default=[])


def _changes(earlier: list[Result], new: Parts) -> str:
    known = [Parts.unpack(result.parts) for result in earlier if result.parts]
    found = min((differences(old, new) for old in known), key=len, default=[])
    return "; ".join(found) or "its earlier result could not be used any more"
