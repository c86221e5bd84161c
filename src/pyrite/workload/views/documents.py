"""The state of a run as data for programs, which `pyrite workload ... --json` prints. The keys stay
the same from version to version; new ones may be added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyrite.workload.run import Run


def run_document(run: Run) -> dict[str, Any]:
    """A run and all of its jobs. Times are in seconds, those of a clock in seconds since 1970."""
    status, phase = run.status, phase_of(run)
    problem = killed_sentence(status.master.pid) if phase == "killed" else status.problem
    length, critical_path = run.lengths()
    return {
        "store": str(run.store),
        "phase": phase,
        "started": status.started,
        "ended": status.ended,
        "seconds": length,
        "critical_path_seconds": critical_path,
        "problem": problem or None,
        "counts": {state.value: count for state, count in run.counts().items()},
        "jobs": [{**row, "state": row["state"].value} for row in run.table()],
    }


def log_document(run: Run, job: str) -> dict[str, Any]:
    """The output of a job, and how the job ended."""
    log, traceback = run.log(job), run.traceback(job)
    row = next(row for row in run.table() if row["job"] == job)
    return {
        "job": job,
        "state": row["state"].value,
        "attempt": row["attempt"],
        "error": row["error"],
        "log": log,
        "traceback": traceback or None,
    }


def phase_of(run: Run) -> str:
    """`starting`, `running`, `ended`, `cancelled` or `broken`, as the store says; `killed` if the
    store says that the run is running but its master is dead."""
    status = run.status
    return status.phase if status.has_ended or not run.has_ended else "killed"


def killed_sentence(pid: int) -> str:
    """What is known about a run in the phase `killed`."""
    return (
        f"its master (process {pid}) was killed, so nothing runs any more; the table shows what "
        "had been recorded until then"
    )
