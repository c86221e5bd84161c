"""Decides which worker gets which job, and what happens to jobs and to the run when a job ends or
fails, or a worker dies.

The code is pure: it is called with events and their times, and returns decisions. It does not use
processes, pipes or files. Jobs are numbers, in the order of the workload; workers are names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import random
from typing import Literal, NamedTuple

from pyrite.workload.scheduling.priority_queue import PriorityQueue
from pyrite.workload.scheduling.resources import Needs, Resources
from pyrite.workload.scheduling.retry_wait import RetryWait
from pyrite.workload.scheduling.states import JobState, OnError

Cause = Literal["crash", "timeout", "cancel"]

_FIRST = (-inf, 0.0)  # the lowest rank

# A worker has one job that runs and one that waits. If its jobs are so short that messages would
# take longer, it has more. It gives them back when one turns out to be long.
DEPTH = 2
MOST_SHORT_JOBS = 16
SHORT_SECONDS = 0.005  # of the jobs that a worker has, together
LONG_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Rules:
    """The properties of the jobs of a run, by job number, and the options of the run. `needs` are
    the amounts of resources that a job takes, out of their `capacities`. `watched` are the jobs
    whose ends are listed."""

    upstream: Sequence[Sequence[int]]
    downstream: Sequence[Sequence[int]]
    priorities: Sequence[int]
    retries: Sequence[int]
    timeouts: Sequence[float | None]
    needs: dict[int, Needs] = field(default_factory=dict)
    capacities: Needs = field(default_factory=dict)
    retry_waits: dict[int, RetryWait] = field(default_factory=dict)
    watched: Collection[int] = frozenset()
    remaining: list[float] | None = None  # the duration of the longest path from each job, if known
    makers: Collection[int] = ()  # the jobs that make more jobs when they have succeeded
    on_error: OnError = "continue"
    crashes_max: int = 2


class Assignment(NamedTuple):
    worker: str
    job: int
    attempt: int


class _Hand:
    """The jobs that a worker has, the running one first, the time when that one started, and how
    long the last jobs took on average."""

    __slots__ = ("is_ready", "jobs", "pace", "since")

    def __init__(self, is_ready: bool) -> None:
        self.jobs: deque[int] = deque()
        self.since = 0.0
        self.pace = LONG_SECONDS  # until it is known
        self.is_ready = is_ready

    def room(self, depth: int, most: int, now: float) -> int:
        """How many jobs it may have."""
        if self.is_long(now):
            return depth
        return max(depth, min(most, int(SHORT_SECONDS / max(self.pace, 1e-9))))

    def is_long(self, now: float) -> bool:
        """Whether it runs a long job."""
        return bool(self.jobs) and now - self.since >= LONG_SECONDS


class Scheduler:
    """`done` has the jobs that have finished already. `attempts` has the number of attempts of each
    job so far, so that no pair (job, attempt) occurs twice.

    `is_current(job)` tells whether the earlier result of a job is up to date. It is called when the
    job is ready to run; if it returns True, the job is skipped. `draw` gives random numbers from 0
    to 1, for the waits before retries. `depth` is the number of jobs that a worker has; by
    default more while they are short.

    `grow(job)` is called when one of the `makers` has succeeded or is skipped: it adds the jobs
    that this job makes to the end of the lists of the rules, and returns their number. The maker
    ends when these have ended: it gathers them. `gathering` has the makers that made jobs already.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        done: Sequence[int] = (),
        attempts: Sequence[int] | None = None,
        is_current: Callable[[int], bool] | None = None,
        depth: int = DEPTH,
        draw: Callable[[], float] = random,
        grow: Callable[[int], int] | None = None,
        gathering: Sequence[int] = (),
    ) -> None:
        count = len(rules.upstream)
        self.states: list[JobState] = [JobState.WAITING] * count
        self.attempts: list[int] = list(attempts) if attempts is not None else [0] * count
        self.changed: dict[int, None] = {}
        self.ended: list[int] = []  # the watched jobs that have ended, in the order of their ends
        self.cancelled = False
        self._rules = rules
        self._depth = depth
        self._most = MOST_SHORT_JOBS if depth == DEPTH else depth
        self._is_current = is_current
        self._grow = grow
        # The jobs that wait for the jobs that they made, and how they will end: SKIPPED if nothing
        # had to run.
        self._gathering: dict[int, JobState] = dict.fromkeys(gathering, JobState.DONE)
        self._failures = [0] * count
        self._crashes = [0] * count
        self._queue = PriorityQueue()
        self._hands: dict[str, _Hand] = {}
        self._holder: dict[int, str] = {}
        self._resources = Resources(rules.capacities)
        self._resting: list[tuple[float, int]] = []  # a heap of jobs by the time of their retry
        self._draw = draw
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
        for job in gathering:
            if job in self._queue and not self._queue.keys[job]:
                self._gather(job)

    # State

    def has_ended(self) -> bool:
        """Whether every job has ended. Then no worker has a job that could fail and need another
        attempt."""
        return self.ended_count == len(self.states)

    @property
    def stops_running_jobs(self) -> bool:
        return self.cancelled or (self._winding_down and self._rules.on_error == "stop")

    @property
    def has_work_for_a_worker(self) -> bool:
        """Whether there is a job for one more worker now."""
        return (
            bool(self._queue.ready_count)
            or self._resources.has_next_before(None)
            or any(len(hand.jobs) > 1 for hand in self._hands.values())
        )

    def jobs_of(self, worker: str) -> tuple[int, ...]:
        hand = self._hands.get(worker)
        return tuple(hand.jobs) if hand is not None else ()

    def busy_workers(self) -> Iterator[str]:
        return (worker for worker, hand in self._hands.items() if hand.jobs)

    # Events

    def joined(self, worker: str, *, is_ready: bool = True) -> None:
        """There is a new worker, which can get jobs. The timeout of a job counts from when its
        worker is ready."""
        self._hands[worker] = _Hand(is_ready)

    def is_ready(self, worker: str, now: float) -> None:
        hand = self._hands[worker]
        hand.is_ready = True
        hand.since = now

    def finished(self, job: int, attempt: int, *, succeeded: bool, now: float) -> bool:
        """An attempt of a job has ended. Returns False, and changes nothing, if it is not the
        current attempt."""
        worker = self._holder.get(job)
        if worker is None or self.attempts[job] != attempt:
            return False
        hand = self._hands[worker]
        hand.pace += (now - hand.since - hand.pace) / 8
        self._take_from(worker, job, now)
        if succeeded:
            self._succeed(job, JobState.DONE)
        else:
            self._try_failed(job, JobState.FAILED, now)
        return True

    def returned(self, job: int, now: float) -> None:
        """A job was taken back from a worker that had not started it. The attempt does not
        count."""
        self._take_from(self._holder[job], job, now)
        self.attempts[job] -= 1
        self._back(job)

    def died(self, worker: str, cause: Cause, now: float) -> int | None:
        """A worker has died. Blames and returns the job that it was running; its other job goes
        back to the queue."""
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
            else:
                state = JobState.TIMEOUT if cause == "timeout" else JobState.CRASHED
                self._try_failed(blamed, state, now)
        return blamed

    def left(self, worker: str) -> None:
        """A worker without a job has ended."""
        if self._hands.pop(worker).jobs:
            raise ValueError(f"worker {worker} has jobs, so it cannot leave")

    def lost(self, worker: str, now: float) -> None:
        """A worker has ended, and it is not known whether a job caused that. Its jobs go back to
        the front of the queue."""
        hand = self._hands.pop(worker)
        while hand.jobs:
            job = hand.jobs.pop()
            self._let_go(job)
            self._back(job, rank=_FIRST)

    def cancel(self) -> None:
        """No more jobs start, and the running jobs have to be stopped."""
        self.cancelled = True
        self._wind_down()

    # Decisions

    def assignments(self, now: float) -> list[Assignment]:
        """Assigns ready jobs to the workers with the fewest jobs, until every worker has as many as
        it may have, or no job is ready."""
        made: list[Assignment] = []
        hands = self._hands
        while self._resting and self._resting[0][0] <= now:
            self._back(heappop(self._resting)[1])
        while True:
            worker, fewest = "", self._most
            for name, hand in hands.items():
                count = len(hand.jobs)
                if count < fewest and (
                    count < self._depth or count < hand.room(self._depth, self._most, now)
                ):
                    worker, fewest = name, count
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

    def recalls(self, now: float) -> list[str]:
        """The workers that should give back the jobs that they have not started: because no more
        jobs may start, because another worker is idle, or because they are behind a long job and
        more than may be there."""
        hands = self._hands
        waiting = [name for name, hand in hands.items() if len(hand.jobs) > 1]
        if not waiting or self._winding_down:
            return waiting
        idle = 0 if self._queue.ready_count else sum(not hand.jobs for hand in hands.values())
        return [
            name
            for n, name in enumerate(waiting)
            if n < idle or (len(hands[name].jobs) > self._depth and hands[name].is_long(now))
        ]

    def overdue(self, now: float) -> list[str]:
        """The workers whose running job has exceeded its timeout."""
        return [worker for worker, deadline in self._deadlines() if deadline <= now]

    def next_moment(self, now: float) -> float | None:
        """When the next job exceeds its timeout, can be tried again, or has become a long one with
        too many jobs behind it; None if never."""
        moments = [deadline for _, deadline in self._deadlines()]
        if self._resting:
            moments.append(self._resting[0][0])
        if self._most > self._depth:
            moments += [
                hand.since + LONG_SECONDS
                for hand in self._hands.values()
                if len(hand.jobs) > self._depth and not hand.is_long(now)
            ]
        return min(moments, default=None)

    def _deadlines(self) -> Iterator[tuple[str, float]]:
        if not self._has_timeouts:
            return
        for worker, hand in self._hands.items():
            if hand.jobs and hand.is_ready:
                timeout = self._rules.timeouts[hand.jobs[0]]
                if timeout is not None:
                    yield worker, hand.since + timeout

    # Internals

    def _rank(self, job: int) -> tuple[int, float]:
        remaining = self._rules.remaining
        return (self._rules.priorities[job], -remaining[job] if remaining is not None else 0.0)

    def _next(self) -> int | None:
        """The next job to run. Jobs that are up to date are skipped, and jobs whose resources are
        in use wait until these are given back."""
        resources = self._resources
        while True:
            if resources.may_have_next and resources.has_next_before(self._queue.first()):
                return resources.next()
            job = self._queue.take()
            if job is None:
                return None
            if self._is_current is not None and self._is_current(job):
                self._succeed(job, JobState.SKIPPED)
                continue
            needs = self._rules.needs.get(job)
            if needs is None or resources.take_or_wait(job, needs, rank=self._rank(job)):
                return job

    def _set(self, job: int, state: JobState) -> None:
        self.states[job] = state
        self.changed[job] = None

    def _end(self, job: int, state: JobState) -> None:
        self.ended_count += 1
        self._set(job, state)
        if job in self._rules.watched:
            self.ended.append(job)

    def _succeed(self, job: int, state: JobState) -> None:
        if job not in self._rules.makers:
            self._end(job, state)
            self._release_downstream(job)
        elif self._winding_down:
            self._end(job, JobState.CANCELLED)
        else:
            assert self._grow is not None
            self._extend(job, self._grow(job), state)

    def _release_downstream(self, job: int) -> None:
        for below in self._rules.downstream[job]:
            if below not in self._queue:
                continue
            if below in self._gathering and self.states[job] is JobState.DONE:
                self._gathering[below] = JobState.DONE
            if self._queue.decrease(below, rank=self._rank(below)):
                if below in self._gathering:
                    self._gather(below)
                else:
                    self._set(below, JobState.READY)

    def _extend(self, job: int, count: int, state: JobState) -> None:
        """Adds the jobs that a job has made, and lets it wait for them."""
        made = range(len(self.states), len(self.states) + count)
        for values in (self.attempts, self._failures, self._crashes):
            values.extend([0] * count)
        self.states.extend([JobState.WAITING] * count)
        timeouts = self._rules.timeouts
        self._has_timeouts = self._has_timeouts or any(timeouts[n] is not None for n in made)
        for n in made:
            self._queue.push(n, key=0, rank=self._rank(n))
            self._set(n, JobState.READY)
        self._gathering[job] = state
        self._queue.push(job, key=count, rank=self._rank(job))
        self._set(job, JobState.WAITING)
        if not count:
            self._gather(job)

    def _gather(self, job: int) -> None:
        """All jobs that a job has made have succeeded, so it has, too."""
        self._queue.remove(job)
        self._end(job, self._gathering.pop(job))
        self._release_downstream(job)

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
        needs = self._rules.needs.get(job)
        if needs is not None:
            self._resources.give_back(needs)

    def _try_failed(self, job: int, state: JobState, now: float) -> None:
        is_crash = state is JobState.CRASHED
        counts = self._crashes if is_crash else self._failures
        counts[job] += 1
        most = self._rules.crashes_max if is_crash else self._rules.retries[job]
        if counts[job] <= most and not self._winding_down:
            self._retry(job, now)
        else:
            self._fail(job, state)

    def _retry(self, job: int, now: float) -> None:
        """The job runs again, at once or after its wait."""
        self._resources.lose_place(job)
        wait = self._rules.retry_waits.get(job)
        if wait is None:
            self._back(job)
            return
        failures = self._failures[job] + self._crashes[job]
        heappush(self._resting, (now + wait.seconds(failures, chance=self._draw()), job))
        self._set(job, JobState.WAITING)

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
        resting = [job for _, job in self._resting]
        for job in [*self._queue.keys, *self._resources.waiting(), *resting]:
            self._end(job, JobState.CANCELLED)
        self._queue = PriorityQueue()
        self._resources.forget_waiting()
        self._resting.clear()
