"""Tells those who watch workloads what the journal of a run is told: which attempts of jobs begin
and end, and how many jobs are in each state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
        self._open: dict[int, Attempt] = {}
        self.ids = RunIds.of(run)
        tell("run_began", run)

    def tell(self, ids: Sequence[str], changed: Iterable[tuple[int, Entry]]) -> None:
        for number, entry in changed:
            self._states[number] = str(entry.state)
            self._tell_attempts(ids[number], number, entry)
        tell("counted", self._run, Counter(self._states.values()))

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

    def _tell_attempts(self, job: str, number: int, entry: Entry) -> None:
        before = self._open.get(number)
        if before is not None and entry.attempt != before.attempt:
            self._end(before, entry.started or before.started, "failed", entry.error)
        if entry.started is None or entry.state is JobState.SKIPPED:
            return
        if number not in self._open and entry.state in _BEGUN:
            self._open[number] = Attempt(
                job=job, number=number, attempt=entry.attempt, started=entry.started
            )
            tell("attempted", self._run, self._open[number])
        if entry.ended is not None and number in self._open:
            outcome = _OUTCOMES.get(entry.state, "failed")
            self._end(self._open[number], entry.ended, outcome, entry.error)

    def _end(self, attempt: Attempt, at: float, outcome: Outcome, error: str | None) -> None:
        self._open.pop(attempt.number, None)
        ended = Attempt(
            job=attempt.job,
            number=attempt.number,
            attempt=attempt.attempt,
            started=attempt.started,
            ended=at,
            outcome=outcome,
            error=error if outcome == "failed" else None,
        )
        tell("attempted", self._run, ended)


_FAILURES: Final = {"FAILED", "CRASHED", "TIMEOUT"}
_BEGUN: Final = {
    JobState.RUNNING,
    JobState.DONE,
    JobState.FAILED,
    JobState.CRASHED,
    JobState.TIMEOUT,
    JobState.CANCELLED,
}
_OUTCOMES: Final[dict[JobState, Outcome]] = {
    JobState.DONE: "completed",
    JobState.CANCELLED: "cancelled",
}
