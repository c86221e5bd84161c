"""The conductor: what both masters share. It asks the scheduler for decisions, turns them into
orders and journal entries, knows the place of each result, and tells which jobs are up to date. A
master talks to the conductor only, and acts.
"""

from __future__ import annotations

import functools

from pyrite.errors import RunBroken
from pyrite.functions import message_of
from pyrite.workload.input.fingerprints import NO_FINGERPRINT, digest
from pyrite.workload.input.fingerprints.outputs import outputs_again
from pyrite.workload.input.fingerprints.parts import Parts, unpack_planned, with_run
from pyrite.workload.input.jobs.maps import branch_id
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.masters.branching import Branching
from pyrite.workload.masters.files_of_jobs import FilesOfJobs
from pyrite.workload.masters.hooks import Hooks
from pyrite.workload.masters.rules import add_branches, rules_of
from pyrite.workload.scheduling.scheduler import DEPTH, Cause, Scheduler
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record, end_of, read_error
from pyrite.workload.storage.entries import Entry, result_of, with_record, with_result
from pyrite.workload.storage.given import is_there
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.places import input_places
from pyrite.workload.storage.store import Store
from pyrite.workload.workers.orders import Order

# The segments are ahead of the journal. If a batch is lost, its records are read from them again.
BATCH_JOBS = 250
BATCH_SECONDS = 0.02


class Conductor:
    def __init__(
        self,
        store: Store,
        plan: Plan,
        journal: Journal,
        options: Options,
        *,
        hooks: Hooks | None = None,
        depth: int = DEPTH,
        folder: str = "",
    ) -> None:
        """`folder` is the working directory of the run, unless it is that of this process."""
        self._hooks = hooks
        self._store = store
        self._journal = journal
        self._journal_plan = journal.plan
        self._entries: list[Entry] = list(journal.entries().values())
        self._branching = Branching(store, journal, plan, self._entries, self._digest_of)
        self._plan = plan = self._branching.plan
        self._fingerprints: list[bytes | None] = [None] * len(plan.ids)
        self._files = FilesOfJobs(plan.files, folder)
        self._parts_of: dict[int, bytes] = {}  # by job with files and a result
        self._began: dict[int, tuple[str, float]] = {}
        self._segments: dict[str, int] = {}  # by worker
        self._log_ends: dict[str, int] = {}
        self._scanned: dict[int, int] = {}
        self._due: float | None = None
        self._packed = functools.lru_cache(maxsize=64)(with_run)
        self._finished: list[int] = []  # their results are not in the journal yet
        self._known_seconds = known = journal.latest_seconds()
        ids = map(self.results_id, range(len(plan.ids))) if plan.branch else plan.ids
        seconds = {n: known[id] for n, id in enumerate(ids) if id in known} if known else {}
        self._has_results = {*seconds}
        self._spoiled = self._tried_since() if seconds else set()
        self._may_skip = bool(known) and not options.rerun
        remaining = remaining_paths(plan.order, plan.downstream, seconds) if seconds else None
        self._rules = rules_of(plan, options, remaining)
        self._scheduler = Scheduler(
            self._rules,
            done=self._branching.done,
            attempts=[entry.attempt for entry in self._entries],
            is_current=self._is_current if self._may_skip or plan.maps else None,
            depth=depth,
            grow=self._grow,
            gathering=list(plan.branches),
        )
        for job, (entry, state) in enumerate(zip(self._entries, self._scheduler.states)):
            if entry.state is not state and entry.state is not JobState.SKIPPED:
                self._scheduler.changed[job] = (
                    None  # in a resumed run, jobs that were running or failed start again
                )

    # State and decisions

    def has_ended(self) -> bool:
        """Whether every job has ended."""
        return self._scheduler.has_ended()

    @property
    def phase(self) -> str:
        """The phase of the run once every job has ended."""
        return "cancelled" if self._scheduler.cancelled else "ended"

    @property
    def stops_running_jobs(self) -> bool:
        return self._scheduler.stops_running_jobs

    @property
    def has_work_for_a_worker(self) -> bool:
        return self._scheduler.has_work_for_a_worker

    def jobs_of(self, worker: str) -> tuple[int, ...]:
        return self._scheduler.jobs_of(worker)

    def timeout_of(self, job: int) -> float | None:
        return self._plan.timeouts[job]

    @property
    def plan(self) -> Plan:
        """The plan, with the branches of maps that are known. Its order is that without them."""
        return self._plan

    def state_of(self, job: int) -> JobState:
        return self._scheduler.states[job]

    def explain(self, job: int) -> tuple[bytes, bytes]:
        """The fingerprint of a job whose upstream jobs have results, and its parts, packed."""
        return self._fingerprint(job), self._parts(job)

    def busy_workers(self) -> list[str]:
        return list(self._scheduler.busy_workers())

    def assign(self, now: float, wall: float) -> list[tuple[str, Order]]:
        """Assigns jobs to the workers that may have more. Returns the orders for them."""
        made = []
        for worker, job, attempt in self._scheduler.assignments(now):
            self._began[job] = (worker, wall)
            plan = self._plan
            has_inputs = plan.passed[job] or job in plan.branch
            inputs = input_places(plan, self._entries, job) if has_inputs else ()
            fingerprint = self._fingerprint(job)
            made.append((worker, Order(job, attempt, fingerprint, inputs, plan.blob_of(job))))
        return made

    def recalls(self, now: float) -> list[str]:
        """The workers that should give back the jobs that they have not started."""
        return self._scheduler.recalls(now)

    def overdue(self, now: float) -> dict[str, str]:
        """The workers whose running job has exceeded its timeout, and why it is stopped."""
        return {
            worker: f"it took longer than its timeout of "
            f"{self._plan.timeouts[self.jobs_of(worker)[0]]:g} s and was stopped"
            for worker in self._scheduler.overdue(now)
        }

    def next_moment(self, now: float) -> float | None:
        """When something has to be done even without an event; None if never."""
        moments = (self._due, self._scheduler.next_moment(now))
        return min([moment for moment in moments if moment is not None], default=None)

    # Orders

    def _fingerprint(self, job: int) -> bytes:
        """The fingerprint of the command, its arguments, the results of all upstream jobs, which
        have finished by now, and its files as they are now."""
        found = self._without_files(job)
        return digest(found, self._files.look(job)) if job in self._plan.files else found

    def _without_files(self, job: int) -> bytes:
        found = self._fingerprints[job]
        if found is None:
            found = self._plan.fingerprints[job]
            above = self._above(job)
            if above:
                found = digest(found, *above.values())
            self._fingerprints[job] = found
        return found

    def _above(self, job: int) -> dict[str, bytes]:
        """The digests of what a job gets from its upstream jobs. They are in the order of the ids,
        because the user may have given the jobs as a set. A map gets the result that it takes
        apart, and a branch only its element of that, unless the whole is passed to it, too."""
        plan = self._plan
        above = plan.upstream[job]
        if not above:
            return {}
        found: dict[str, bytes] = {}
        if job in plan.maps:
            above = [plan.maps[job].over]
        elif job in plan.branch:
            map, number = plan.branch[job]
            over = plan.maps[map].over
            found[branch_id(plan.ids[over], "")] = self._branching.element_digest(map, number)
            above = [u for u in above if u != over or u in plan.maps[map].passed]
        if len(above) > 1:
            above = sorted(above, key=plan.ids.__getitem__)
        for u in above:
            found[plan.ids[u]] = self._digest_of(u)
        return found

    def _settled(self, job: int) -> bytes:
        """The fingerprint of a job that has ended. If a file that it may have read was changed
        while it ran, the fingerprint is random, so that the job runs again the next time."""
        earlier = self._journal.latest_result(self.results_id(job))
        made: tuple[str, ...] = ()
        if earlier is not None and earlier.parts:
            now = unpack_planned(self._plan.parts[job])
            made = outputs_again(Parts.unpack(earlier.parts), now, self._plan.files[job])
        found = self._files.settle(job, made)
        return digest(self._without_files(job), found)

    def _parts(self, job: int) -> bytes:
        """What the fingerprint of the job was made of, packed, to explain why a job runs."""
        planned = self._plan.parts[job]
        upstream = self._above(job)
        if job not in self._plan.files:
            return with_run(planned, upstream=upstream) if upstream else self._packed(planned)
        seen = self._files.seen(job)
        return with_run(planned, seen.contents, upstream, seen.made, seen.unsure)

    def _digest_of(self, job: int) -> bytes:
        """The digest of the result of a job and of the files that it wrote. If the result says
        nothing about what the job did, the fingerprint of the job."""
        if job in self._plan.maps:
            return self._branching.gathered_digest(job)
        entry = self._entries[job]
        if self._says_nothing(job, entry.result_digest):
            return entry.fingerprint or NO_FINGERPRINT
        found = entry.result_digest or NO_FINGERPRINT
        written = self._written(job)
        return digest(found, *written) if written else found

    def _written(self, job: int) -> list[bytes]:
        """The digests of the files that a job with a result has written."""
        if job not in self._plan.files:
            return []
        packed = self._parts_of.get(job)
        if packed is None:
            entry = self._entries[job]
            fingerprint = entry.fingerprint or NO_FINGERPRINT
            known = self._journal.result(self.results_id(job), fingerprint)
            packed = self._parts_of[job] = known.parts if known is not None else b""
        parts = Parts.unpack(packed) if packed else Parts()
        return [parts.files[path] for path in parts.made]

    def _is_current(self, job: int) -> bool:
        """Whether the job has a result with its fingerprint; if so, this becomes its result."""
        if job in self._plan.maps and self._plan.maps[job].over in self._plan.maps:
            return True  # the elements are the results of branches; there is nothing to take apart
        if not self._may_skip or job not in self._has_results:
            return False
        id = self.results_id(job)
        found = self._journal.result(id, self._fingerprint(job))
        if found is None or not is_there(self._store, found.segment, found.offset):
            return False
        if self._says_nothing(job, found.digest) and (
            id in self._spoiled or found != self._journal.latest_result(id)
        ):
            return False  # what it wrote elsewhere may have been overwritten by another attempt
        self._entries[job] = with_result(self._entries[job], found)
        self._parts_of.pop(job, None)
        return True

    def _tried_since(self) -> set[str]:
        """The jobs whose last attempt was later than their results, and has none."""
        here = (
            self.results_id(job)
            for job, entry in enumerate(self._entries)
            if entry.attempt and not entry.state.has_result and job not in self._plan.maps
        )
        return self._journal.failed_since().union(here)

    def _says_nothing(self, job: int, result_digest: bytes | None) -> bool:
        """Whether the result is None or an exit code, which says nothing about what a job did."""
        return result_digest == NO_FINGERPRINT or job in self._plan.programs

    def results_id(self, job: int) -> str:
        """The id under which the results of a job are kept."""
        return self._branching.results_id(job)

    def _grow(self, map: int) -> int:
        """Makes the branches of a map, and returns their number."""
        branches = self._branching.grow(map)
        add_branches(self._rules, map, branches)
        self._fingerprints.extend([None] * len(branches))
        known = self._known_seconds
        self._has_results.update(job for job in branches if known and self.results_id(job) in known)
        return len(branches)

    # Events

    def joined(
        self,
        worker: str,
        *,
        segment: int | None = None,
        log_end: int = 0,
        is_ready: bool = True,
    ) -> None:
        """There is a new worker. `segment` is the number of its segment and of its log, if it
        writes them itself."""
        if segment is not None:
            self._segments[worker] = segment
            self._log_ends[worker] = log_end
        self._scheduler.joined(worker, is_ready=is_ready)

    def is_ready(self, worker: str, now: float, *, began: float | None = None) -> None:
        """The worker has started. `began` is the time at which its job began, if it has one."""
        self._scheduler.is_ready(worker, now)
        if began is not None:
            for job in self.jobs_of(worker)[:1]:
                self._began[job] = (worker, began)

    def returned(self, job: int, now: float) -> None:
        self._scheduler.returned(job, now)

    def left(self, worker: str) -> None:
        self._scheduler.left(worker)

    def lost(self, worker: str, now: float) -> None:
        self._scheduler.lost(worker, now)

    def cancel(self) -> None:
        self._scheduler.cancel()

    def ended(self, record: Record, *, segment: int, worker: str, now: float) -> bool:
        """An attempt of a job has ended and its record is in a segment. Returns False if it is not
        the current attempt of a job of this plan."""
        if record.plan != self._journal_plan:
            return False
        self._scanned[segment] = end_of(record)
        self._log_ends[worker] = record.log_end
        if record.has_elements:
            self._branching.taken_apart(record.job, segment, record.offset)
        if not self._scheduler.finished(
            record.job, record.attempt, succeeded=record.succeeded, now=now
        ):
            self._branching.forget(record.job)
            return False
        for next_one in self._scheduler.jobs_of(worker)[:1]:
            self._began[next_one] = (worker, record.ended)
        error = None if record.succeeded else self._error_at(segment, record.offset)
        if record.job in self._plan.files:
            if record.succeeded:
                record = record._replace(fingerprint=self._settled(record.job))
            else:
                self._files.failed(record.job)
        self._entries[record.job] = with_record(
            self._entries[record.job], record, segment=segment, worker=worker, error=error
        )
        if record.succeeded:
            self._finished.append(record.job)
            if record.job in self._plan.files:
                self._parts_of[record.job] = self._parts(record.job)
        return True

    def _error_at(self, segment: int, offset: int) -> str:
        try:
            return read_error(self._store.segment(segment), offset)[0]
        except OSError as error:
            return f"it failed, but its error cannot be read from the store: {message_of(error)}"

    def died(
        self,
        worker: str,
        cause: Cause,
        why: str,
        *,
        segment: int | None,
        log: tuple[int, int],
        now: float,
        wall: float,
    ) -> None:
        """A worker has died. The job that it was running has no record."""
        blamed = self._scheduler.died(worker, cause, now)
        if blamed is not None:
            if blamed in self._plan.files:
                self._files.failed(blamed)
            _, started = self._began.get(blamed, (worker, wall))
            self._entries[blamed] = self._entries[blamed]._replace(
                worker=worker,
                started=started,
                ended=wall,
                error=why,
                segment=segment,
                offset=None,
                log_start=log[0],
                log_end=log[1],
            )

    # The journal

    def flush_if_due(self, now: float) -> None:
        changed = len(self._scheduler.changed)
        if changed >= BATCH_JOBS or (self._due is not None and now >= self._due):
            self.flush()
        elif changed and self._due is None:
            self._due = now + BATCH_SECONDS

    def flush(self) -> None:
        """Writes the changes since the last batch to the journal. A job with several changes is
        written once."""
        self._due = None
        scheduler = self._scheduler
        if not scheduler.changed and not self._scanned:
            return
        batch = []
        for job in scheduler.changed:
            entry = self._entries[job]
            state = scheduler.states[job]
            if state is JobState.RUNNING or state is JobState.ASSIGNED:
                worker, started = self._began[job]
                entry = entry._replace(
                    state=state,
                    attempt=scheduler.attempts[job],
                    worker=worker,
                    started=started if state is JobState.RUNNING else None,
                    ended=None,
                    error=None,
                    segment=self._segments.get(worker),
                    offset=None,
                    log_start=self._log_ends.get(worker, 0),
                    log_end=self._log_ends.get(worker, 0),
                )
            elif state is not entry.state or scheduler.attempts[job] != entry.attempt:
                entry = entry._replace(state=state, attempt=scheduler.attempts[job])
                if entry.ended is None:  # it was assigned to a worker and taken back
                    entry = entry._replace(worker=None, started=None)
            self._entries[job] = entry
            batch.append((job, entry))
        results = [
            result_of(self.results_id(job), self._entries[job], self._parts(job))
            for job in self._finished
        ]
        self._journal.write(batch, self._scanned.items(), results)
        if scheduler.ended and self._hooks is not None:
            self._hooks.tell([(job, self._entries[job]) for job in scheduler.ended])
            scheduler.ended.clear()
        self._finished.clear()
        scheduler.changed.clear()
        self._scanned.clear()

    def salvage(self) -> None:
        """Writes the last changes when the run breaks, if possible. If not, the segments have
        them."""
        try:
            self.flush()
        except RunBroken:
            pass
