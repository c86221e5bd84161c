"""The error that says which jobs of a run are not done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyrite.errors import JobsFailed
from pyrite.workload.scheduling.states import JobState

JOBS_NAMED = 10


def raise_for_failures(rows: Sequence[dict[str, Any]], store: Path, *, has_ended: bool) -> None:
    """Raises JobsFailed if a row of the table of a run is of a job that is not done and, if the run
    has not ended, will not run any more."""
    found = not_done(rows, has_ended=has_ended)
    if found:
        raise JobsFailed(_message(found, len(rows), store), found)


def not_done(rows: Sequence[dict[str, Any]], *, has_ended: bool) -> list[dict[str, Any]]:
    """The rows of jobs that did not succeed. Those that failed come first, because the others wait
    for them."""
    found = [
        row for row in rows if not row["state"].has_result and (has_ended or row["state"].has_ended)
    ]
    return sorted(found, key=lambda row: not row["state"].is_failure)


def log_command(store: Path, job: str) -> str:
    """The command that shows the output of a job, to be copied into a shell.

    >>> log_command(Path("/tmp/my runs"), "a")
    "pyrite workload log '/tmp/my runs' -- a"
    """
    return f"pyrite workload log {shlex.quote(str(store))} -- {shlex.quote(job)}"


def _message(found: list[dict[str, Any]], total: int, store: Path) -> str:
    lines = [f"  - {_sentence(row)}" for row in found[:JOBS_NAMED]]
    others = len(found) - JOBS_NAMED
    if others > 0:
        lines.append(f"  and {others} {'other' if others == 1 else 'others'}")
    first = found[0]["job"]
    return "\n".join(
        [
            f"{len(found)} of {total} {'job is' if total == 1 else 'jobs are'} not done:",
            *lines,
            f"to see the output and the traceback of a job, call run.log({first!r}) and "
            f"run.traceback({first!r}), or run: {log_command(store, first)}",
        ]
    )


def _sentence(row: dict[str, Any]) -> str:
    state: JobState = row["state"]
    why = row["error"] or _REASONS.get(state, "the run ended before this job did")
    return f"job '{row['job']}' is {state}: {why}"


_REASONS = {
    JobState.BLOCKED: "a job upstream of it failed",
    JobState.CANCELLED: "the run was cancelled, or stopped after another job failed",
}
