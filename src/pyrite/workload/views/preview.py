"""What a run would do, and why: what `Workload.plan` returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyrite.errors import PyriteError
from pyrite.functions import did_you_mean, shorten_text

Action = Literal["run", "may run", "skip"]

ROWS_SHOWN = 100
_WIDTH = 40  # characters of an id in a table
_WHY = 200


@dataclass(frozen=True, slots=True)
class Planned:
    """What would happen to a job. A job that `may run` depends on one that runs: it is skipped if
    that one has the same result as before."""

    job: str
    action: Action
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"job '{self.job}' {_VERBS[self.action]}: {'; '.join(self.reasons)}"


class Preview(Sequence[Planned]):
    """The jobs of a run that has not been started, in the order of the workload. `print` shows a
    table of them."""

    def __init__(self, jobs: Sequence[Planned]) -> None:
        self._jobs = list(jobs)
        self._by_id = {job.job: job for job in self._jobs}

    def table(self) -> list[dict[str, Any]]:
        """A list with a dict per job: `job`, `action` ("run", "may run" or "skip"), and `reasons`,
        a list of sentences."""
        return [
            {"job": job.job, "action": job.action, "reasons": list(job.reasons)}
            for job in self._jobs
        ]

    def why(self, job: str) -> str:
        """Why this job would run or be skipped, in a sentence."""
        found = self._by_id.get(job)
        if found is None:
            near = did_you_mean(job, self._by_id)
            raise PyriteError(f"there is no job '{job}' in this plan{near}")
        return str(found)

    def counts(self) -> dict[Action, int]:
        """The number of jobs with each action."""
        found = Counter(job.action for job in self._jobs)
        return {action: found[action] for action in _VERBS}

    def __getitem__(self, n: Any) -> Any:
        return self._jobs[n]

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Planned]:
        return iter(self._jobs)

    def __repr__(self) -> str:
        return f"<plan: {self._summary()}>"

    def __str__(self) -> str:
        """A table: all jobs or, if there are many, those that are not skipped."""
        shown = self._jobs
        if len(shown) > ROWS_SHOWN:
            shown = [job for job in shown if job.action != "skip"][:ROWS_SHOWN]
        names = [shorten_text(job.job, _WIDTH) for job in shown]
        width = max(map(len, names), default=0)
        lines = [
            f"{name:<{width}}  {job.action:<7}  {shorten_text('; '.join(job.reasons), _WHY)}"
            for name, job in zip(names, shown)
        ]
        if len(shown) < len(self._jobs):
            lines.append(f"{len(self._jobs) - len(shown):,} other jobs are not shown")
        return "\n".join([*lines, self._summary()])

    def _summary(self) -> str:
        found = self.counts()
        return (
            f"{found['run']:,} to run, {found['may run']:,} that may run, {found['skip']:,} to skip"
        )


_VERBS: dict[Action, str] = {"run": "would run", "may run": "may run", "skip": "would be skipped"}
