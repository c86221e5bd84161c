"""The conductor: what both masters share. It asks the scheduler for decisions, turns them into
orders and journal entries, and knows the place of each result. A master talks to the conductor
only, and acts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyrite.errors import RunBroken
from pyrite.functions import message_of
from pyrite.watching.workloads import Outcome
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.input.sources.marks import marked_source
from pyrite.workload.masters.hooks import Hooks
from pyrite.workload.masters.rules import add_branches, rules_of
from pyrite.workload.masters.up_to_date import UpToDate
from pyrite.workload.masters.watched import Watched
from pyrite.workload.scheduling.scheduler import DEPTH, Cause, Scheduler
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import Record, end_of, read_error
from pyrite.workload.storage.entries import Entry, result_of, with_record
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
        watched: Watched | None = None,
        depth: int = DEPTH,
        folder: str = "",
    ) -> None:
        """`folder` is the working directory of the run, unless it is that of this process."""
        self._hooks = hooks
        self._watched = watched
        self._store = store
        self._journal = journal
        self._journal_plan = journal.plan
        self._entries: list[Entry] = list(journal.entries().values())
        self._up_to_date = current = UpToDate(
            store, journal, plan, self._entries, rerun=options.rerun, folder=folder
        )
        self._branching = current.branching
        self._plan = plan = self._branching.plan
        self._began: dict[int, tuple[str, float]] = {}
        self._segments: dict[str, int] = {}  # by worker
        self._log_ends: dict[str, int] = {}
        self._scanned: dict[int, int] = {}
        self._due: float | None = None
        self._finished: list[int] = []  # their results are not in the journal yet
        seconds = current.seconds
        remaining = remaining_paths(plan.order, plan.downstream, seconds) if seconds else None
        self._rules = rules_of(plan, options, remaining)
        self._scheduler = Scheduler(
            self._rules,
            done=self._branching.done,
            attempts=[entry.attempt for entry in self._entries],
            is_current=current.is_current if current.may_skip or plan.maps else None,
            depth=depth,
            grow=self._grow,
            gathering=list(plan.branches),
        )
        if hooks is not None:
            hooks.tell_missed(plan, self._entries, self._branching.done)
        for job, (entry, state) in enumerate(zip(self._entries, self._scheduler.states)):
            # In a resumed run, jobs that were running or failed start again.
            if entry.state is not state and entry.state is not JobState.SKIPPED:
                self._scheduler.changed[job] = None
        if watched is not None:
            watched.states(enumerate(self._entries))

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

    @property
    def plan(self) -> Plan:
        """The plan, with the branches of maps that are known. Its order is that without them."""
        return self._plan

    def state_of(self, job: int) -> JobState:
        return self._scheduler.states[job]

    def explain(self, job: int) -> tuple[bytes, bytes]:
        """The fingerprint of a job whose upstream jobs have results, and its parts, packed."""
        return self._up_to_date.fingerprint(job), self._up_to_date.parts(job)

    def results_id(self, job: int) -> str:
        """The id under which the results of a job are kept."""
        return self._up_to_date.results_id(job)

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
            fingerprint = self._up_to_date.fingerprint(job)
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

    def _grow(self, map: int) -> int:
        """Makes the branches of a map, and returns their number."""
        branches = self._up_to_date.grow(map)
        add_branches(self._rules, map, branches)
        return len(branches)

    # Events

    def joined(
        self, worker: str, *, segment: int | None = None, log_end: int = 0, is_ready: bool = True
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
        if marked_source(record.fingerprint) is not None:
            self._up_to_date.edited(record)
        if record.job in self._plan.files:
            record = self._up_to_date.settled(record)
        self._entries[record.job] = with_record(
            self._entries[record.job], record, segment=segment, worker=worker, error=error
        )
        if record.succeeded:
            self._finished.append(record.job)
        self._tell_end(record.job, "completed" if record.succeeded else "failed")
        return True

    def _tell_end(self, job: int, outcome: Outcome) -> None:
        if self._watched is not None:
            entry = self._entries[job]._replace(attempt=self._scheduler.attempts[job])
            self._watched.ended(self._plan.ids[job], job, entry, outcome)

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
            self._up_to_date.failed(blamed)
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
            self._tell_end(blamed, "cancelled" if cause == "cancel" else "failed")

    # The journal

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Writes the changes before and after a block that runs the jobs."""
        self.flush()
        try:
            yield
        except RunBroken:
            with suppress(RunBroken):  # if it is not possible, the segments have the last changes
                self.flush()
            raise
        self.flush()

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
        current = self._up_to_date
        results = [
            result_of(current.results_id(job), self._entries[job], current.parts(job))
            for job in self._finished
        ]
        self._journal.write(batch, self._scanned.items(), results)
        if self._watched is not None:
            self._watched.began(self._plan.ids, batch)
            self._watched.states(batch)
        if scheduler.ended and self._hooks is not None:
            self._hooks.tell([(job, self._entries[job]) for job in scheduler.ended])
            scheduler.ended.clear()
        self._finished.clear()
        scheduler.changed.clear()
        self._scanned.clear()
