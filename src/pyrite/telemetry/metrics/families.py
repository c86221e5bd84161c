"""The metrics under their names, as prometheus-client wants them. The labels are `job` and
`vertex`, never an execution: each value of a label is a series that Prometheus keeps for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from pyrite.functions import encodable
from pyrite.telemetry.metrics.observer import COUNTING, Counting
from pyrite.telemetry.metrics.totals import JobTotals

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_VERTEX_COUNTERS: Final = (
    ("received", "Items that the vertex has received"),
    ("emitted", "Items that the vertex has emitted"),
    ("errors", "Items that the vertex could not process, and runs that failed at it"),
    ("busy_seconds", "Seconds that the processors of the vertex have worked"),
    ("spilled_bytes", "Bytes that the vertex has written to files because they did not fit"),
)
_VERTEX_GAUGES: Final = (
    ("queue_items", "Items that wait in the inbound queues of the vertex now"),
    ("held_bytes", "Bytes that groups, joins and sorts of the vertex hold in memory now"),
)


_STATES: Final = ("WAITING", "RUNNING", "DONE", "SKIPPED", "FAILED")


class PyriteCollector(Collector):
    """Reads the metrics when they are scraped. If `job` is given, only those of this job."""

    def __init__(self, counting: Counting = COUNTING, job: str | None = None) -> None:
        self._counting = counting
        self._job = job

    def describe(self) -> Iterable[Metric]:
        return families([], {})

    def collect(self) -> Iterable[Metric]:
        with self._counting.totals() as totals:
            jobs = [each for each in totals if self._job in (None, each.job)]
            workloads = {
                name: states
                for name, states in totals.workloads.items()
                if self._job in (None, name)
            }
            return list(families(jobs, workloads))


def registry_of(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def families(
    jobs: Sequence[JobTotals], workloads: Mapping[str, Mapping[str, int]]
) -> Iterator[Metric]:
    # One label that cannot be encoded would spoil the whole scrape.
    names = {job.job: encodable(job.job) for job in jobs}
    for key, help in _VERTEX_COUNTERS:
        counter = CounterMetricFamily(f"pyrite_vertex_{key}", help, labels=("job", "vertex"))
        for job in jobs:
            for vertex, numbers in job.vertices.items():
                counter.add_metric(
                    (names[job.job], encodable(vertex)), numbers.counters.get(key, 0)
                )
        yield counter
    for key, help in _VERTEX_GAUGES:
        gauge = GaugeMetricFamily(f"pyrite_vertex_{key}", help, labels=("job", "vertex"))
        for job in jobs:
            for vertex, numbers in job.vertices.items():
                gauge.add_metric((names[job.job], encodable(vertex)), numbers.gauges.get(key, 0))
        yield gauge
    running = GaugeMetricFamily(
        "pyrite_job_running", "Runs of the job that are running now", labels=("job",)
    )
    runs = CounterMetricFamily(
        "pyrite_job_runs", "Runs of the job that have ended, by state", labels=("job", "state")
    )
    success = GaugeMetricFamily(
        "pyrite_job_last_success_timestamp_seconds",
        "When the last run of the job that completed ended, in seconds since 1970",
        labels=("job",),
    )
    duration = GaugeMetricFamily(
        "pyrite_job_duration_seconds",
        "How long the last run of the job that has ended took",
        labels=("job",),
    )
    for job in jobs:
        name = names[job.job]
        running.add_metric((name,), job.running)
        for state in ("completed", "failed", "cancelled"):
            runs.add_metric((name, state), job.ended[state])
        if job.last_success is not None:
            success.add_metric((name,), job.last_success)
        if job.last_seconds is not None:
            duration.add_metric((name,), job.last_seconds)
    yield from (running, runs, success, duration)
    in_state = GaugeMetricFamily(
        "pyrite_workload_jobs", "Jobs of the workload, by state", labels=("workload", "state")
    )
    for name, states in workloads.items():
        for state in sorted({*_STATES, *states}):
            in_state.add_metric((encodable(name), state), states.get(state, 0))
    yield in_state
