"""Totals: what all runs of each job have done together. Pure: no threads and no clock.

A counter of Prometheus must never fall, but what is known of one run can: a task is run again, or
the last estimate was too high. So a total grows by what is above the most that was seen of the run
so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MOST_JOBS: Final = 1000
"""What comes later is counted together, as OTHERS: each job and vertex is a series of its own."""
OTHERS: Final = "(other jobs)"

Counters = dict[str, float]


@dataclass(slots=True)
class VertexTotals:
    counters: Counters = field(default_factory=dict)
    gauges: Counters = field(default_factory=dict)
    """Of the runs that are running, together."""


@dataclass(slots=True)
class JobTotals:
    job: str
    vertices: dict[str, VertexTotals] = field(default_factory=dict)
    running: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    """How many runs ended in each state."""
    last_success: float | None = None
    last_seconds: float | None = None


@dataclass(slots=True)
class _Run:
    totals: JobTotals
    most: dict[str, Counters] = field(default_factory=dict)
    gauges: dict[str, Counters] = field(default_factory=dict)


class Totals:
    """Not thread-safe."""

    def __init__(self, most_jobs: int = MOST_JOBS) -> None:
        self._most_jobs = most_jobs
        self._jobs: dict[str, JobTotals] = {}
        self._runs: dict[str, _Run] = {}
        self.workloads: dict[str, dict[str, int]] = {}
        """How many jobs of each workload are in each state."""

    def began(self, run: str, job: str) -> None:
        if job not in self._jobs and len(self._jobs) >= self._most_jobs:
            job = OTHERS
        totals = self._jobs.setdefault(job, JobTotals(job))
        totals.running += 1
        self._runs[run] = _Run(totals)

    def saw(self, run: str, metrics: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes the metrics of a run, by vertex."""
        found = self._runs.get(run)
        if found is None:
            return
        for vertex, numbers in metrics.items():
            self._count(found, vertex, counters_of(numbers))
            self._measure(found, vertex, gauges_of(numbers))

    def ended(
        self,
        run: str,
        *,
        state: str,
        at: float,
        seconds: float,
        failed_at: str | None = None,
    ) -> None:
        """A run has ended. `failed_at` is the vertex that it failed at."""
        found = self.left(run)
        if found is None:
            return
        if failed_at is not None:
            errors = found.most.get(failed_at, {}).get("errors", 0)
            self._count(found, failed_at, {"errors": errors + 1})
        totals = found.totals
        totals.ended[state] += 1
        totals.last_seconds = seconds
        if state == "completed":
            totals.last_success = max(at, totals.last_success or 0)

    def left(self, run: str) -> _Run | None:
        """A run is not seen any more."""
        found = self._runs.pop(run, None)
        if found is not None:
            for vertex, gauges in list(found.gauges.items()):
                self._measure(found, vertex, dict.fromkeys(gauges, 0))
            found.totals.running -= 1
        return found

    def __iter__(self) -> Iterator[JobTotals]:
        return iter(self._jobs.values())

    def __getitem__(self, job: str) -> JobTotals:
        return self._jobs[job]

    def _vertex(self, run: _Run, vertex: str) -> VertexTotals:
        name = vertex if run.totals.job != OTHERS else "(all)"
        return run.totals.vertices.setdefault(name, VertexTotals())

    def _count(self, run: _Run, vertex: str, counters: Counters) -> None:
        totals = self._vertex(run, vertex).counters
        most = run.most.setdefault(vertex, {})
        for key, value in counters.items():
            totals[key] = totals.get(key, 0) + max(0, value - most.get(key, 0))
            most[key] = max(value, most.get(key, 0))

    def _measure(self, run: _Run, vertex: str, gauges: Counters) -> None:
        totals = self._vertex(run, vertex).gauges
        before = run.gauges.get(vertex, {})
        for key, value in gauges.items():
            totals[key] = totals.get(key, 0) + value - before.get(key, 0)
        run.gauges[vertex] = gauges


def counters_of(numbers: Mapping[str, Any]) -> Counters:
    return {
        "received": numbers.get("received", 0),
        "emitted": numbers.get("emitted", 0),
        "errors": numbers.get("skipped", 0) + numbers.get("dead_letters", 0),
        "busy_seconds": numbers.get("busy_seconds", 0.0),
        "spilled_bytes": numbers.get("spilled_bytes", 0),
    }


def gauges_of(numbers: Mapping[str, Any]) -> Counters:
    return {
        "queue_items": numbers.get("queue_fill", 0),
        "held_bytes": numbers.get("held_bytes", 0),
    }
