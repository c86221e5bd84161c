"""Tells those who watch workloads what the journal of a run is told: which attempts of jobs begin
and end, and how many jobs are in each state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pyrite.telemetry.environment import Held, from_environment
from pyrite.telemetry.workloads.ids import RunIds
from pyrite.watching.workloads import Attempt, Outcome, WorkloadRun, are_observed, tell
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Status, Store


def watched(store: Store, status: Status) -> Watched | None:
    """None if nobody watches: then it costs nothing."""
    held = from_environment()
    if not are_observed():
        held.close()
        return None
    from pyrite.workload.storage.temporary import name_of  # masters start faster without it

    id = f"{store} {status.run} {status.session} {status.started}"
    return Watched(WorkloadRun(name=name_of(store), id=id, started=status.started), held)


class Watched:
    def __init__(self, run: WorkloadRun, held: Held) -> None:
        self._run = run
        self._held = held
        self._states: dict[int, str] = {}
        self._counts: Counter[str] = Counter()
        self._open: dict[int, Attempt] = {}
        self._ended: dict[int, int] = {}
        """The last attempt of each job that has ended."""
        self.ids = RunIds.of(run)
        tell("run_began", run)

    def states(self, entries: Iterable[tuple[int, Entry]]) -> None:
        """The states of jobs have changed."""
        for number, entry in entries:
            before = self._states.get(number)
            if before is not None:
                self._counts[before] -= 1
            self._states[number] = state = str(entry.state)
            self._counts[state] += 1
        tell("counted", self._run, {state: n for state, n in self._counts.items() if n})

    def began(self, ids: Sequence[str], entries: Iterable[tuple[int, Entry]]) -> None:
        """Jobs may have begun: those that are running."""
        for number, entry in entries:
            if entry.state is JobState.RUNNING:
                self._begin(ids[number], number, entry)

    def ended(self, id: str, number: int, entry: Entry, outcome: Outcome) -> None:
        """An attempt of a job has ended."""
        self._begin(id, number, entry)
        attempt = self._open.pop(number, None)
        if attempt is not None:
            self._ended[number] = attempt.attempt
            self._end(attempt, entry.ended or attempt.started, outcome, entry.error)

    def end(self, status: Status, at: float) -> None:
        """The run has ended."""
        for attempt in list(self._open.values()):
            self._end(attempt, at, "cancelled", None)
        failed = any(state in _FAILURES for state in self._states.values())
        outcome: Outcome = "failed" if failed or status.phase == "broken" else "completed"
        if status.phase == "cancelled":
            outcome = "cancelled"
        problem = status.problem or ("jobs of the workload failed" if failed else None)
        tell("run_ended", self._run, outcome, at, problem if outcome == "failed" else None)

    def close(self) -> None:
        """Sends what is left to send."""
        self._held.close()

    def _begin(self, id: str, number: int, entry: Entry) -> None:
        has_begun = number in self._open or self._ended.get(number, 0) >= entry.attempt
        if entry.started is not None and not has_begun:
            self._open[number] = attempt = Attempt(
                job=id, number=number, attempt=entry.attempt, started=entry.started
            )
            tell("attempted", self._run, attempt)

    def _end(self, attempt: Attempt, at: float, outcome: Outcome, error: str | None) -> None:
        error = error if outcome == "failed" else None
        tell("attempted", self._run, replace(attempt, ended=at, outcome=outcome, error=error))


_FAILURES: Final = {"FAILED", "CRASHED", "TIMEOUT"}
