"""Decides which job goes to which worker, and what becomes of a job and of the run when something
ends, fails or dies.

Pure: it is told what happened, and when; it answers with what to do. It knows nothing of processes,
pipes or files. Jobs are numbers here, in the order of the workload; workers are names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from pyrite.workload.queue import PriorityQueue
from pyrite.workload.states import JobState, OnError

Cause = Literal["crash", "timeout", "cancel"]

_FIRST = (-inf, 0.0)  # a rank before all others

DEPTH = (
    2  # jobs with a worker: the one that runs and one that waits, so that a death strands little
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the jobs of a run, by their number."""

    upstream: Sequence[Sequence[int]]
    downstream: Sequence[Sequence[int]]
    priorities: Sequence[int]
    retries: Sequence[int]
    timeouts: Sequence[float | None]
    pools: Sequence[str | None]
    pool_sizes: Mapping[str, int] = field(default_factory=dict)
    remaining: Sequence[float] | None = (
        None  # of each job the longest path from it, where durations are known
    )
    on_error: OnError = "continue"
    crashes_max: int = 2


class Assignment(NamedTuple):
    worker: str
    job: int
    attempt: int


class _Hand:
    """The jobs that a worker has, the running one first, and since when it runs."""

    __slots__ = ("is_ready", "jobs", "since")

    def __init__(self, is_ready: bool) -> None:
        self.jobs: deque[int] = deque()
        self.since = 0.0
        self.is_ready = is_ready


class Scheduler:
    """`attempts` counts tries of an earlier run, so that no (job, attempt) comes twice; `done` has
    the jobs that need not run again.

    `is_current(job)` is asked when a job could go to a worker: whether its earlier result still
    holds, so that it is skipped.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        done: Sequence[int] = (),
        attempts: Sequence[int] | None = None,
        is_current: Callable[[int], bool] | None = None,
        depth: int = DEPTH,
    ) -> None:
        count = len(rules.upstream)
        self.states: list[JobState] = [JobState.WAITING] * count
        self.attempts: list[int] = list(attempts) if attempts is not None else [0] * count
        self.changed: dict[int, None] = {}
        self.cancelled = False
        self._rules = rules
        self._depth = depth
        self._is_current = is_current
        self._failures = [0] * count
        self._crashes = [0] * count
        self._queue = PriorityQueue()
        self._hands: dict[str, _Hand] = {}
        self._holder: dict[int, str] = {}
        self._in_pool: dict[str, int] = dict.fromkeys(rules.pool_sizes, 0)
        self._parked: dict[str, PriorityQueue] = {
            pool: PriorityQueue() for pool in rules.pool_sizes
        }
        self._winding_down = False
        self._has_timeouts = any(timeout is not None for timeout in rules.timeouts)
        self.ended_count = len(done)
        for job in done:
            self.states[job] = JobState.DONE
        for job, jobs in enumerate(rules.upstream):
            if self.states[job] is JobState.DONE:
                continue
            key = sum(self.states[above] is not JobState.DONE for above in jobs)
            self._queue.push(job, key=key, rank=self._rank(job))
            if not key:
                self.states[job] = JobState.READY

    # What is so

    def has_ended(self) -> bool:
        """Whether every job has: nothing waits, and nothing is with a worker that could fail and
        need another try."""
        return self.ended_count == len(self.states)

    @property
    def stops_running_jobs(self) -> bool:
        return self.cancelled or (self._winding_down and self._rules.on_error == "stop")

    @property
    def has_work_for_a_worker(self) -> bool:
        """Whether one more worker would find something to do now."""
        return bool(self._queue.ready_count) or any(
            len(hand.jobs) > 1 for hand in self._hands.values()
        )

    def jobs_of(self, worker: str) -> tuple[int, ...]:
        hand = self._hands.get(worker)
        return tuple(hand.jobs) if hand is not None else ()

    def busy_workers(self) -> Iterator[str]:
        return (worker for worker, hand in self._hands.items() if hand.jobs)

    # What happens

    def joined(self, worker: str, *, is_ready: bool = True) -> None:
        """A worker may be given jobs. The time of a job does not count until its worker is
        ready."""
        self._hands[worker] = _Hand(is_ready)

    def is_ready(self, worker: str, now: float) -> None:
        hand = self._hands[worker]
        hand.is_ready = True
        hand.since = now

    def finished(self, job: int, attempt: int, *, succeeded: bool, now: float) -> bool:
        """A try of a job came to its end. False if it is not the try that was waited for: then
        nothing is changed."""
        worker = self._holder.get(job)
        if worker is None or self.attempts[job] != attempt:
            return False
        self._take_from(worker, job, now)
        if succeeded:
            self._end(job, JobState.DONE)
            self._release_downstream(job)
        else:
            self._try_failed(job, JobState.FAILED)
        return True

    def returned(self, job: int, now: float) -> None:
        """A job that a worker had not begun was taken back from it. Nobody is to blame, and the try
        does not count."""
        self._take_from(self._holder[job], job, now)
        self.attempts[job] -= 1
        self._back(job)

    def died(self, worker: str, cause: Cause, now: float) -> int | None:
        """A worker is gone. Only the job that it was running is to blame, and returned; the other
        goes back to the queue."""
        hand = self._hands.pop(worker)
        blamed: int | None = None
        while len(hand.jobs) > 1:
            job = hand.jobs.pop()
            self._let_go(job)
            self.attempts[job] -= 1
            self._back(job)
        if hand.jobs:
            blamed = hand.jobs.pop()
            self._let_go(blamed)
            if cause == "cancel":
                self._end(blamed, JobState.CANCELLED)
            elif cause == "timeout":
                self._try_failed(blamed, JobState.TIMEOUT)
            else:
                self._crashed(blamed)
        return blamed

    def left(self, worker: str) -> None:
        """A worker that has no job is gone."""
        if self._hands.pop(worker).jobs:
            raise ValueError(f"worker {worker} has jobs, and cannot just leave")

    def lost(self, worker: str, now: float) -> None:
        """A worker is gone, and which job is to blame, if any, is not known: they go back, to the
        front of the queue."""
        hand = self._hands.pop(worker)
        while hand.jobs:
            job = hand.jobs.pop()
            self._let_go(job)
            self._back(job, rank=_FIRST)

    def cancel(self) -> None:
        """No job is started any more; those that run are to be ended."""
        self.cancelled = True
        self._wind_down()

    # What to do

    def assignments(self, now: float) -> list[Assignment]:
        """Ready jobs for the least busy workers, as long as one of them may have more."""
        made: list[Assignment] = []
        hands = self._hands
        while True:
            worker, fewest = "", self._depth
            for name, hand in hands.items():
                if len(hand.jobs) < fewest:
                    worker, fewest = name, len(hand.jobs)
                    if not fewest:
                        break
            if not worker:
                break
            job = self._next()
            if job is None:
                break
            hand = hands[worker]
            if not fewest:
                hand.since = now
            hand.jobs.append(job)
            self._holder[job] = worker
            self.attempts[job] += 1
            self._set(job, JobState.ASSIGNED if fewest else JobState.RUNNING)
            made.append(Assignment(worker, job, self.attempts[job]))
        return made

    def recalls(self) -> list[tuple[str, int]]:
        """Jobs that wait behind another one and should be taken back if they have not begun: no
        other may start, or a worker is idle."""
        if self._winding_down:
            return [
                (worker, hand.jobs[-1])
                for worker, hand in self._hands.items()
                if len(hand.jobs) > 1
            ]
        idle = sum(not hand.jobs for hand in self._hands.values())
        if not idle or self._queue.ready_count:
            return []
        return [
            (worker, hand.jobs[-1]) for worker, hand in self._hands.items() if len(hand.jobs) > 1
        ][:idle]

    def overdue(self, now: float) -> list[str]:
        """The workers whose running job has had its time."""
        if not self._has_timeouts:
            return []
        return [worker for worker, deadline in self._deadlines() if deadline <= now]

    def next_deadline(self) -> float | None:
        if not self._has_timeouts:
            return None
        return min((deadline for _, deadline in self._deadlines()), default=None)

    def _deadlines(self) -> Iterator[tuple[str, float]]:
        for worker, hand in self._hands.items():
            if hand.jobs and hand.is_ready:
                timeout = self._rules.timeouts[hand.jobs[0]]
                if timeout is not None:
                    yield worker, hand.since + timeout

    # How it comes about

    def _rank(self, job: int) -> tuple[int, float]:
        remaining = self._rules.remaining
        return (self._rules.priorities[job], -remaining[job] if remaining is not None else 0.0)

    def _next(self) -> int | None:
        """The next job to run: those whose result still holds are skipped on the way, those whose
        pool is full are put aside."""
        while (job := self._queue.take()) is not None:
            if self._is_current is not None and self._is_current(job):
                self._end(job, JobState.SKIPPED)
                self._release_downstream(job)
                continue
            pool = self._rules.pools[job]
            if pool is not None:
                if self._in_pool[pool] >= self._rules.pool_sizes[pool]:
                    self._parked[pool].push(job, key=0, rank=self._rank(job))
                    continue
                self._in_pool[pool] += 1
            return job
        return None

    def _set(self, job: int, state: JobState) -> None:
        self.states[job] = state
        self.changed[job] = None

    def _end(self, job: int, state: JobState) -> None:
        self.ended_count += 1
        self._set(job, state)

    def _release_downstream(self, job: int) -> None:
        for below in self._rules.downstream[job]:
            if below in self._queue and self._queue.decrease(below, rank=self._rank(below)):
                self._set(below, JobState.READY)

    def _take_from(self, worker: str, job: int, now: float) -> None:
        hand = self._hands[worker]
        was_running = hand.jobs[0] == job
        hand.jobs.remove(job)
        if was_running and hand.jobs:
            hand.since = now
            self._set(hand.jobs[0], JobState.RUNNING)
        self._let_go(job)

    def _let_go(self, job: int) -> None:
        del self._holder[job]
        pool = self._rules.pools[job]
        if pool is not None:
            self._in_pool[pool] -= 1
            other = self._parked[pool].take()
            if other is not None:
                self._queue.push(other, key=0, rank=self._rank(other))

    def _try_failed(self, job: int, state: JobState) -> None:
        self._failures[job] += 1
        if self._failures[job] <= self._rules.retries[job] and not self._winding_down:
            self._back(job)
        else:
            self._fail(job, state)

    def _crashed(self, job: int) -> None:
        self._crashes[job] += 1
        if self._crashes[job] <= self._rules.crashes_max and not self._winding_down:
            self._back(job)
        else:
            self._fail(job, JobState.CRASHED)

    def _back(self, job: int, rank: tuple[float, float] | None = None) -> None:
        if self._winding_down:
            self._end(job, JobState.CANCELLED)
        else:
            self._queue.push(job, key=0, rank=rank or self._rank(job))
            self._set(job, JobState.READY)

    def _fail(self, job: int, state: JobState) -> None:
        self._end(job, state)
        below = deque(self._rules.downstream[job])
        while below:
            blocked = below.popleft()
            if blocked in self._queue:
                self._queue.remove(blocked)
                self._end(blocked, JobState.BLOCKED)
                below.extend(self._rules.downstream[blocked])
        if self._rules.on_error != "continue":
            self._wind_down()

    def _wind_down(self) -> None:
        self._winding_down = True
        for job in [
            *self._queue.keys,
            *(job for parked in self._parked.values() for job in parked.keys),
        ]:
            self._end(job, JobState.CANCELLED)
        self._queue = PriorityQueue()
        self._parked = {pool: PriorityQueue() for pool in self._parked}
