"""The observer that counts all runs of this process, for the endpoint and the gateway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyrite.job import Execution
from pyrite.telemetry.following import Following
from pyrite.telemetry.metrics.totals import Totals
from pyrite.watching.observing import failure_of, name_of, read
from pyrite.watching.workloads import Attempt, Outcome, WorkloadRun

OnChange = Callable[[bool], None]
"""Called when a run has begun, or (True) when something has ended. It must return at once."""


class Counting(Following):
    """Runs are counted while anybody uses it. What was counted stays: counters never fall in the
    life of a process."""

    def __init__(self) -> None:
        super().__init__()
        self._totals = Totals()
        self._counting = threading.Lock()
        self._looking = threading.Lock()
        self._listeners: list[OnChange] = []

    def use(self, on_change: OnChange) -> None:
        """Counts from now on."""
        with self._counting:
            self._listeners.append(on_change)
        self.follow()

    def leave(self, on_change: OnChange) -> None:
        with self._counting:
            if on_change in self._listeners:
                self._listeners.remove(on_change)
            if self._listeners:
                return
        self.unfollow()

    @contextmanager
    def totals(self) -> Iterator[Totals]:
        """What all runs have done until now; only for the time of the block."""
        self.settle()
        # One at a time: this may ask other processes, which may not answer for a while.
        if self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        with self._counting:
            yield self._totals

    def _look(self) -> None:
        for execution in self.running:
            metrics = read(execution.metrics, {})
            with self._counting:
                self._totals.saw(execution.id, metrics)

    def on_begin(self, execution: Execution) -> None:
        with self._counting:
            self._totals.began(execution.id, name_of(execution.job))
            # Series begin at 0: Prometheus does not see a counter grow that begins with its value.
            self._totals.saw(execution.id, {vertex.name: {} for vertex in execution.job.dag})
        self._tell(has_ended=False)

    def on_end(self, execution: Execution) -> None:
        metrics = read(execution.metrics, {})
        error = None if execution.cancelled() else execution.exception(0)
        ended = execution.ended or execution.submitted
        with self._counting:
            self._totals.saw(execution.id, metrics)
            self._totals.ended(
                execution.id,
                state=execution.status.value,
                at=ended,
                seconds=max(0.0, ended - execution.submitted),
                failed_at=None if error is None else failure_of(error).vertex,
            )
        self._tell(has_ended=True)

    def on_left(self, execution: Execution) -> None:
        with self._counting:
            self._totals.left(execution.id)

    def run_began(self, run: WorkloadRun) -> None:
        with self._counting:
            self._totals.began(run.id, run.name)
        self._tell(has_ended=False)

    def attempted(self, run: WorkloadRun, attempt: Attempt) -> None:
        key = f"{run.id} {attempt.number} {attempt.attempt}"
        with self._counting:
            if attempt.outcome is None:
                self._totals.began(key, f"{run.name}.{attempt.job}")
            else:
                self._totals.ended(
                    key,
                    state=attempt.outcome,
                    at=attempt.ended,
                    seconds=max(0.0, attempt.ended - attempt.started),
                )

    def counted(self, run: WorkloadRun, states: Mapping[str, int]) -> None:
        with self._counting:
            self._totals.workloads[run.name] = dict(states)
        self._tell(has_ended=True)

    def run_ended(self, run: WorkloadRun, outcome: Outcome, at: float, problem: str | None) -> None:
        seconds = max(0.0, at - run.started)
        with self._counting:
            self._totals.ended(run.id, state=outcome, at=at, seconds=seconds)
        self._tell(has_ended=True)

    def after_fork(self) -> None:
        super().after_fork()
        self._counting = threading.Lock()
        self._looking = threading.Lock()
        self._totals = Totals()

    def _tell(self, *, has_ended: bool) -> None:
        for listener in tuple(self._listeners):
            listener(has_ended)


COUNTING: Final = Counting()
