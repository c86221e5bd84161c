"""The conductor: what both masters share. It asks the scheduler for decisions, turns them into
orders and journal entries, knows the place of each result, and tells which jobs are up to date. A
master talks to the conductor only, and acts.
"""

from __future__ import annotations

from pyrite.errors import RunBroken
from pyrite.workload.input.fingerprints import NO_FINGERPRINT, digest, of_files
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.scheduling.scheduler import DEPTH, Cause, Rules, Scheduler
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage import encoding
from pyrite.workload.storage.cleanup_queue import Record, end_of, read_error, read_result
from pyrite.workload.storage.journal import Entry, Journal, with_record
from pyrite.workload.storage.store import Store
from pyrite.workload.workers.orders import Order

# The segments are ahead of the journal. If a batch is lost, its records are read from them again.
BATCH_JOBS = 250
BATCH_SECONDS = 0.02


class Conductor:
    def __init__(
        self, store: Store, plan: Plan, journal: Journal, options: Options, *, depth: int = DEPTH
    ) -> None:
        self._store = store
        self._plan = plan
        self._journal = journal
        self._entries: list[Entry] = list(journal.entries().values())
        self._fingerprints: list[bytes | None] = [None] * len(plan.ids)
        self._began: dict[int, tuple[str, float]] = {}
        self._segments: dict[str, int] = {}  # by worker
        self._log_ends: dict[str, int] = {}
        self._scanned: dict[int, int] = {}
        self._due: float | None = None
        seconds = {
            n: e.result_seconds for n, e in enumerate(self._entries) if e.result_seconds is not None
        }
        rules = Rules(
            upstream=plan.upstream,
            downstream=plan.downstream,
            priorities=plan.priorities,
            retries=plan.retries,
            timeouts=plan.timeouts,
            pools=plan.pools,
            pool_sizes=options.pools,
            remaining=remaining_paths(plan.order, plan.downstream, seconds) if seconds else None,
            on_error=options.on_error,
            crashes_max=options.crashes_max,
        )
        knows_results = not options.rerun and any(
            entry.result_segment is not None for entry in self._entries
        )
        self._scheduler = Scheduler(
            rules,
            done=[
                n
                for n, entry in enumerate(self._entries)
                if entry.state.has_result and self._result_is_there(n)
            ],
            attempts=[entry.attempt for entry in self._entries],
            is_current=self._is_current if knows_results else None,
            depth=depth,
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

    def busy_workers(self) -> list[str]:
        return list(self._scheduler.busy_workers())

    def assign(self, now: float, wall: float) -> list[tuple[str, Order]]:
        """Assigns jobs to the workers that may have more. Returns the orders for them."""
        made = []
        for worker, job, attempt in self._scheduler.assignments(now):
            self._began[job] = (worker, wall)
            passed = self._plan.passed[job]
            inputs = tuple([self._result_place(above) for above in passed]) if passed else ()
            made.append((worker, Order(job, attempt, self._fingerprint(job), inputs)))
        return made

    def recalls(self, now: float) -> set[str]:
        """The workers that should give back the jobs that they have not started."""
        return {worker for worker, _ in self._scheduler.recalls()}.union(
            self._scheduler.crowded(now)
        )

    def overdue(self, now: float) -> dict[str, str]:
        """The workers whose running job has exceeded its timeout, and why it is stopped."""
        return {
            worker: f"it took longer than its timeout of "
            f"{self._plan.timeouts[self.jobs_of(worker)[0]]:g} s and was stopped"
            for worker in self._scheduler.overdue(now)
        }

    def next_moment(self, now: float) -> float | None:
        """When something has to be done even without an event; None if never."""
        moments = (self._due, self._scheduler.next_deadline(), self._scheduler.next_crowded(now))
        return min((moment for moment in moments if moment is not None), default=None)

    # Orders

    def _result_place(self, job: int) -> tuple[int, int]:
        entry = self._entries[job]
        assert entry.result_segment is not None
        assert entry.result_offset is not None
        return entry.result_segment, entry.result_offset

    def _fingerprint(self, job: int) -> bytes:
        """The fingerprint of the command, its arguments and the results of all upstream jobs, which
        have finished by now."""
        found = self._fingerprints[job]
        if found is None:
            found = self._plan.fingerprints[job]
            above = self._plan.upstream[job]
            if above:
                found = digest(found, *[self._digest_of(u) for u in above])
            self._fingerprints[job] = found
        # Upstream jobs may write the files among the arguments, and the program may change them. So
        # the files are read just before the program runs, and again when it has ended.
        argv = self._plan.programs.get(job)
        return found if argv is None else digest(found, of_files(argv))

    def _digest_of(self, job: int) -> bytes:
        """The digest of the result of a job. If the result is None or an exit code, it says nothing
        about what the job did; then the fingerprint of the job."""
        entry = self._entries[job]
        if entry.result_digest == NO_FINGERPRINT or job in self._plan.programs:
            return entry.fingerprint or NO_FINGERPRINT
        return entry.result_digest or NO_FINGERPRINT

    def _is_current(self, job: int) -> bool:
        """Whether the earlier result of the job is up to date."""
        entry = self._entries[job]
        return (
            entry.result_segment is not None
            and entry.fingerprint == self._fingerprint(job)
            and self._result_is_there(job)
        )

    def _result_is_there(self, job: int) -> bool:
        segment, offset = self._result_place(job)
        try:
            return encoding.is_there(read_result(self._store.segment(segment), offset))
        except OSError:
            return False

    # Events

    def joined(self, worker: str, *, segment: int | None = None, is_ready: bool = True) -> None:
        """There is a new worker. `segment` is the number of its segment and of its log, if it
        writes them itself."""
        if segment is not None:
            self._segments[worker] = segment
        self._scheduler.joined(worker, is_ready=is_ready)

    def is_ready(self, worker: str, now: float) -> None:
        self._scheduler.is_ready(worker, now)

    def allow_short_jobs(self) -> None:
        self._scheduler.allow_short_jobs()

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
        the current attempt of the job."""
        self._scanned[segment] = end_of(record)
        self._log_ends[worker] = record.log_end
        if not self._scheduler.finished(
            record.job, record.attempt, succeeded=record.succeeded, now=now
        ):
            return False
        for next_one in self._scheduler.jobs_of(worker)[:1]:
            self._began[next_one] = (worker, record.ended)
        error = (
            None if record.succeeded else read_error(self._store.segment(segment), record.offset)[0]
        )
        if record.succeeded and record.job in self._plan.programs:
            record = record._replace(fingerprint=self._fingerprint(record.job))
        self._entries[record.job] = with_record(
            self._entries[record.job], record, segment=segment, worker=worker, error=error
        )
        return True

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
        self._journal.write(batch, self._scanned.items())
        scheduler.changed.clear()
        self._scanned.clear()

    def salvage(self) -> None:
        """Writes the last changes when the run breaks, if possible. If not, the segments have
        them."""
        try:
            self.flush()
        except RunBroken:
            pass
