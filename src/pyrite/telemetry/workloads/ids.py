"""The ids of a run of a workload, and of the attempts of its jobs, in traces and in lineage. Pure.

The master and the workers make them of the same text, so they need not tell each other."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from dataclasses import dataclass

from pyrite.watching.workloads import WorkloadRun

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_RUNS = uuid.UUID("6f1d8a43-0a5e-5c55-9d4e-3f7e3a4e5b10")


@dataclass(frozen=True, slots=True)
class RunIds:
    """
    >>> ids = RunIds("shop", "run 1", "ab" * 16, "01")
    >>> RunIds.unpacked(ids.packed()) == ids
    True
    >>> ids.traceparent(7, 1).startswith("00-" + "ab" * 16)
    True
    """

    workload: str
    run: str
    trace: str
    flags: str = "01"

    @staticmethod
    def of(run: WorkloadRun) -> RunIds:
        """The trace is that of the variable TRACEPARENT, if it is set."""
        found = _TRACEPARENT.fullmatch(os.environ.get("TRACEPARENT", ""))
        if found is not None:
            return RunIds(run.name, run.id, found[1], found[3])
        return RunIds(run.name, run.id, _digest(run.id)[:32])

    def packed(self) -> str:
        return "\n".join((self.workload, self.run, self.trace, self.flags))

    @staticmethod
    def unpacked(text: str) -> RunIds | None:
        parts = text.split("\n")
        return RunIds(*parts) if len(parts) == 4 else None

    def span(self, job: int | None = None, attempt: int = 0) -> int:
        """The span of an attempt of a job; without a job, that of the run."""
        return int(_digest(self.run, job, attempt)[:16], 16)

    def traceparent(self, job: int, attempt: int) -> str:
        return f"00-{self.trace}-{self.span(job, attempt):016x}-{self.flags}"

    def lineage_run(self, job: int | None = None, attempt: int = 0) -> str:
        """The id of a run of OpenLineage."""
        return lineage_run_id(f"{self.run} {job} {attempt}")

    def name_of(self, job: str) -> str:
        """The name of a job in lineage and in metrics."""
        return f"{self.workload}.{job}"


def lineage_run_id(text: str) -> str:
    """A UUID for a run, always the same for the same text."""
    return str(uuid.uuid5(_RUNS, text))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
