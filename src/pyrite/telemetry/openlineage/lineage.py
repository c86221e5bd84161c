"""The observer that tells OpenLineage of all runs of this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pyrite.closing import Closing
from pyrite.job import Execution, JobStatus
from pyrite.telemetry.courier import Courier
from pyrite.telemetry.following import Following
from pyrite.telemetry.libraries import need
from pyrite.telemetry.openlineage.records import EventType, Parent, Record, namespace_of_jobs
from pyrite.telemetry.reachable import check_reachable
from pyrite.telemetry.workloads.ids import RunIds, lineage_run_id
from pyrite.telemetry.workloads.parents import lineage_parent
from pyrite.watching.observing import failure_of, name_of, read
from pyrite.watching.views import FailureView
from pyrite.watching.workloads import Attempt, Outcome, WorkloadRun
from pyrite.where import path_of


def lineage() -> Lineage:
    """Tells OpenLineage when each run of this process begins, completes, fails or is cancelled, and
    what it reads and writes, until it is closed. Where the events go, its client finds out:
    `OPENLINEAGE_URL`, `OPENLINEAGE_CONFIG`, `OPENLINEAGE__TRANSPORT__*`, or a file
    `openlineage.yml`. `OPENLINEAGE_NAMESPACE` is the namespace of the jobs, and
    `OPENLINEAGE_PARENT_ID` their parent, as `namespace/job/run`.

    With one of these variables in the environment, this is on as long as any instance or client of
    the process is open. The events are sent in the background, and no job fails or waits because of
    them.
    """
    need("openlineage.client", "openlineage-python", "telemetry.lineage()")
    return Lineage()


class Lineage(Following, Closing):
    """Made by `pyrite.telemetry.lineage()`."""

    is_gone = False

    def __init__(self) -> None:
        super().__init__()
        self._begun: dict[str, Record] = {}
        self._workloads: dict[str, Record] = {}
        self._courier: Courier[Record] = Courier(
            "pyrite-lineage",
            "OpenLineage",
            _prepare,
            reach=_reach,
            at_once=1,  # each event is a request of its own
            settle=self.settle,
        )
        self.follow()

    def on_begin(self, execution: Execution) -> None:
        job = execution.job
        parent, root = map(Parent.of, lineage_parent())
        lines = [vertex.origin for vertex in job.dag if vertex.origin is not None]
        record = self._begun[execution.id] = Record(
            type="START",
            time=execution.submitted,
            run=lineage_run_id(execution.id),
            job=name_of(job),
            kind="JOB",
            namespace=namespace_of_jobs(),
            parent=parent,
            root=root,
            execution=execution.id,
            dag=job.dag,
            source=path_of(lines[0]) if lines else None,
        )
        self._courier.post(record)

    def on_end(self, execution: Execution) -> None:
        error = None if execution.cancelled() else execution.exception(0)
        self._courier.post(
            replace(
                self._begun.pop(execution.id),
                type=_TYPES[execution.status],
                time=execution.ended or execution.submitted,
                metrics=read(execution.metrics, {}),
                failure=None if error is None else failure_of(error),
            )
        )

    def on_left(self, execution: Execution) -> None:
        self._begun.pop(execution.id)

    def run_began(self, run: WorkloadRun) -> None:
        parent, root = map(Parent.of, lineage_parent())
        self._workloads[run.id] = record = Record(
            type="START",
            time=run.started,
            run=RunIds.of(run).lineage_run(),
            job=run.name,
            kind="WORKLOAD",
            namespace=namespace_of_jobs(),
            parent=parent,
            root=root,
        )
        self._courier.post(record)

    def attempted(self, run: WorkloadRun, attempt: Attempt) -> None:
        of_run, ids = self._workloads[run.id], RunIds.of(run)
        parent = Parent(of_run.namespace, of_run.job, of_run.run)
        record = replace(
            of_run,
            time=attempt.started,
            run=ids.lineage_run(attempt.number, attempt.attempt),
            job=ids.name_of(attempt.job),
            kind="JOB",
            parent=parent,
            root=of_run.root or parent,
        )
        if attempt.outcome is not None:
            record = _ended(record, attempt.outcome, attempt.ended, attempt.error)
        self._courier.post(record)

    def run_ended(self, run: WorkloadRun, outcome: Outcome, at: float, problem: str | None) -> None:
        self._courier.post(_ended(self._workloads.pop(run.id), outcome, at, problem))

    def flush(self) -> bool:
        """Waits a little until all events are sent. Returns whether they are."""
        return self._courier.flush()

    def close(self) -> None:
        """Sends the events that are left."""
        self.unfollow()
        self._courier.close()

    def after_fork(self) -> None:
        super().after_fork()
        self._begun = {}


_TYPES: Final[dict[JobStatus, EventType]] = {
    JobStatus.COMPLETED: "COMPLETE",
    JobStatus.FAILED: "FAIL",
    JobStatus.CANCELLED: "ABORT",
}


def _ended(record: Record, outcome: Outcome, at: float, problem: str | None) -> Record:
    failure = FailureView(message=problem or "it failed") if outcome == "failed" else None
    return replace(record, type=_TYPES[JobStatus(outcome)], time=at, failure=failure)


def _reach() -> None:
    """Raises OSError if nobody listens where events go, as far as it is known before the client is
    imported."""
    others = ("OPENLINEAGE__", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED")
    files = ("openlineage.yml", os.path.expanduser("~/.openlineage/openlineage.yml"))
    if not any(name.startswith(others) for name in os.environ.copy()) and not any(
        map(os.path.exists, files)
    ):
        check_reachable(os.environ.get("OPENLINEAGE_URL", ""))


def _prepare() -> Callable[[list[Record]], None]:
    from pyrite.telemetry.openlineage.events import emitting

    return emitting()
