"""The conductor: the part that both masters share. It turns the decisions of the scheduler into
journal entries, knows the place of each result, and tells which jobs are up to date.
"""

from __future__ import annotations

from pyrite.errors import RunBroken
from pyrite.workload.input.fingerprints import NO_FINGERPRINT, digest, of_files
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.scheduling.scheduler import DEPTH, Assignment, Cause, Rules, Scheduler
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
        self.scheduler = Scheduler(
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
        for job, (entry, state) in enumerate(zip(self._entries, self.scheduler.states)):
            if entry.state is not state and entry.state is not JobState.SKIPPED:
                self.scheduler.changed[job] = (
                    None  # in a resumed run, jobs that were running or failed start again
                )

    # Orders

    def order(self, assignment: Assignment) -> Order:
        job = assignment.job
        passed = self._plan.passed[job]
        inputs = tuple([self._result_place(above) for above in passed]) if passed else ()
        return Order(job, assignment.attempt, self._fingerprint(job), inputs)

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

    def hired(self, worker: str, segment: int, *, log_end: int = 0) -> None:
        self._segments[worker] = segment
        self._log_ends[worker] = log_end

    def began(self, job: int, worker: str, now: float) -> None:
        self._began[job] = (worker, now)

    def ended(self, record: Record, *, segment: int, worker: str, now: float) -> bool:
        """An attempt of a job has ended and its record is in a segment. Returns False if it is not
        the current attempt of the job."""
        self._scanned[segment] = end_of(record)
        self._log_ends[worker] = record.log_end
        if not self.scheduler.finished(
            record.job, record.attempt, succeeded=record.succeeded, now=now
        ):
            return False
        for next_one in self.scheduler.jobs_of(worker)[:1]:
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
        blamed = self.scheduler.died(worker, cause, now)
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
        changed = len(self.scheduler.changed)
        if changed >= BATCH_JOBS or (self._due is not None and now >= self._due):
            self.flush()
        elif changed and self._due is None:
            self._due = now + BATCH_SECONDS

    @property
    def flush_due(self) -> float | None:
        return self._due

    def flush(self) -> None:
        """Writes the changes since the last batch to the journal. A job with several changes is
        written once."""
        self._due = None
        scheduler = self.scheduler
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
