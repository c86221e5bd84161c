"""Finds out what a run would do, without running anything.

The conductor that the masters use decides on a copy of the journal which jobs it would skip. So the
forecast and the run cannot disagree. What is downstream of a job that would run is not decided yet:
it depends on the result.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace

from pyrite.workload.input.fingerprints.parts import Parts, differences, may_be_of, unpack_planned
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import in_order
from pyrite.workload.masters.conductor import Conductor
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.given import given_results, why_gone
from pyrite.workload.storage.paper_journal import PaperJournal
from pyrite.workload.storage.result_table import Result
from pyrite.workload.storage.store import Store
from pyrite.workload.views.preview import Planned, Preview

UPSTREAM_NAMED = 3


def forecast(store: Store, plan: Plan, options: Options) -> Preview:
    """What a new run of this plan in this store would do. Nothing is written, and no lock is
    needed; the store need not exist."""
    with closing(PaperJournal(store)) as journal:
        return _Forecast(store, plan, options, journal).preview()


class _Forecast:
    def __init__(self, store: Store, plan: Plan, options: Options, journal: PaperJournal) -> None:
        self._store = store
        self._journal = journal
        self._options = options
        self._before: dict[str, Entry] = journal.entries()
        journal.begin(journal.plan + 1, plan, given_results(store, journal, plan))
        conductor = Conductor(store, plan, journal, options, depth=sys.maxsize)
        conductor.joined("nobody")
        conductor.assign(0.0, 0.0)  # skips what is up to date, and all that this makes ready
        self._conductor = conductor
        self._plan = conductor.plan  # with the branches of maps whose elements are known

    def preview(self) -> Preview:
        found: dict[int, Planned] = {}
        for job in in_order(self._plan.upstream, self._plan.downstream):
            found[job] = self._planned(job, found)
        return Preview([found[job] for job in range(len(self._plan.ids))])

    def _planned(self, job: int, found: dict[int, Planned]) -> Planned:
        id = self._plan.ids[job]
        if job in self._plan.given:
            return Planned(id, "skip", ("it is not selected, and its earlier result is used",))
        state = self._conductor.state_of(job)
        if state is JobState.SKIPPED:
            return Planned(id, "skip", ("it is up to date",))
        if self._options.rerun:
            return Planned(id, "run", ("rerun is True",))
        if job in self._plan.branches:
            return self._map(job, [found[branch] for branch in self._plan.branches[job]])
        if state is not JobState.WAITING:
            return Planned(id, "run", tuple(self._why(job)))
        above = [found[u] for u in self._plan.upstream[job] if found[u].action != "skip"]
        named = [
            f"its upstream job {one.job} {'would' if one.action == 'run' else 'may'} run"
            for one in above[:UPSTREAM_NAMED]
        ]
        if len(above) > UPSTREAM_NAMED:
            named.append(
                f"{len(above) - UPSTREAM_NAMED} more of its upstream jobs would or may run"
            )
        own = self._own(job)
        if job in self._plan.maps:
            over = self._plan.ids[self._plan.maps[job].over]
            named.append(f"one job per element of {over}, known when {over} has ended")
        return Planned(id, "run" if own else "may run", (*own, *named))

    def _map(self, job: int, branches: list[Planned]) -> Planned:
        """A map whose branches are known, of which some are not skipped."""
        count = sum(branch.action != "skip" for branch in branches)
        reason = f"{count} of its {len(branches)} jobs would run"
        return Planned(self._plan.ids[job], "run", (reason,))

    def _why(self, job: int) -> list[str]:
        """Why a job runs whose upstream jobs are all up to date."""
        id = self._plan.ids[job]
        results = self._journal.results.all_of(self._conductor.results_id(job))
        if not results:
            return [self._never_done(id)]
        fingerprint, parts = self._conductor.explain(job)
        same = next((result for result in results if result.fingerprint == fingerprint), None)
        if same is not None and (gone := why_gone(self._store, same.segment, same.offset)):
            return [gone]
        if same is not None:
            return ["another version or attempt of it may have overwritten what it wrote"]
        return _changes(results, Parts.unpack(parts)) or ["something that it uses has changed"]

    def _own(self, job: int) -> list[str]:
        """Why a job runs whatever the results of its upstream jobs will be; empty if it may be
        skipped."""
        id = self._plan.ids[job]
        last, mapped = self._before.get(id), self._plan.maps.get(job)
        if mapped and mapped.over in self._plan.maps and last and last.state.has_result:
            return []  # it takes nothing apart, so it has no result besides those of its branches
        results = self._journal.results.all_of(id)
        if not results:
            return [self._never_done(id)]
        new = unpack_planned(self._plan.parts[job])
        if not new.unsure and any(may_be_of(result.parts, new) for result in results):
            return []
        return _changes(results, new, is_planned=True)

    def _never_done(self, id: str) -> str:
        last = self._before.get(id)
        if last is None or not last.attempt:
            return "it never ran"
        return f"it has no result: it was {last.state} in the last run"


def _changes(results: list[Result], new: Parts, *, is_planned: bool = False) -> list[str]:
    """What is different from the result that is most like it. `is_planned` says that the files and
    the results of the upstream jobs are not known yet."""
    found = []
    for old in (Parts.unpack(result.parts) for result in results if result.parts):
        known = replace(old, files={}, upstream={}, made=()) if is_planned else old
        found.append(differences(known, new))
    if not found:
        return ["what its earlier result was made of is not known"]
    return min(found, key=len)
