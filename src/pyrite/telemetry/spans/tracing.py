"""The observer that traces all runs of this process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Final

from pyrite.closing import Closing
from pyrite.job import Execution
from pyrite.telemetry.courier import Courier
from pyrite.telemetry.following import Following
from pyrite.telemetry.libraries import need
from pyrite.telemetry.reachable import check_reachable
from pyrite.telemetry.spans.records import Span, job_span
from pyrite.telemetry.spans.stages import StageTimes
from pyrite.telemetry.workloads.ids import RunIds
from pyrite.telemetry.workloads.parents import traceparent
from pyrite.watching.observing import read, view_of
from pyrite.watching.views import FailureView
from pyrite.watching.workloads import Attempt, Outcome, WorkloadRun

LOOK_SECONDS: Final = 0.25
"""How often the stages of jobs on Spark and on peers are looked at."""
SPANS_AT_ONCE: Final = 100
"""Of jobs, each with its stages: collectors refuse messages that are too large."""


def traces() -> Tracing:
    """Sends a trace of each run of this process to OpenTelemetry, until it is closed: a span for
    the job, and under it one for each stage. If the program has set a tracer provider, the spans go
    there; otherwise they go where the `OTEL_*` variables say. A span that is current when a job is
    executed is the parent of the job; otherwise it is that of the variable `TRACEPARENT`.

    With `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_TRACES_EXPORTER` in the environment, this is on as
    long as any instance or client of the process is open.
    """
    need("opentelemetry.sdk.trace", "opentelemetry-sdk", "telemetry.traces()")
    return Tracing()


class Tracing(Following, Closing):
    """Made by `pyrite.telemetry.traces()`."""

    is_gone = False

    def __init__(self) -> None:
        super().__init__()
        self._begun: dict[str, tuple[str | None, StageTimes]] = {}
        """The parent and the stages of each run."""
        self._parents: dict[str, str | None] = {}
        """Of runs of workloads."""
        self._courier: Courier[Span] = Courier(
            "pyrite-traces",
            "the collector of OpenTelemetry",
            self._prepare,
            reach=_reach,
            at_once=SPANS_AT_ONCE,
            again=lambda: LOOK_SECONDS if any(map(_has_stages, self.running)) else None,
            settle=self.settle,
        )
        self.follow()

    def on_begin(self, execution: Execution) -> None:
        self._begun[execution.id] = current_parent(), StageTimes()
        if _has_stages(execution):
            self._courier.wake()

    def on_end(self, execution: Execution) -> None:
        parent, times = self._begun.pop(execution.id)
        self._courier.post(job_span(view_of(execution), times, parent=parent))

    def on_left(self, execution: Execution) -> None:
        self._begun.pop(execution.id)

    def run_began(self, run: WorkloadRun) -> None:
        self._parents[run.id] = current_parent()

    def attempted(self, run: WorkloadRun, attempt: Attempt) -> None:
        if attempt.outcome is None:
            return
        ids = RunIds.of(run)
        self._courier.post(
            Span(
                name=f"job {attempt.job}",
                start=attempt.started,
                end=attempt.ended,
                attributes={
                    "pyrite.workload": run.name,
                    "pyrite.job.name": attempt.job,
                    "pyrite.job.kind": "workload",
                    "pyrite.job.attempt": attempt.attempt,
                    "pyrite.state": attempt.outcome,
                },
                failure=_failure(attempt.outcome, attempt.error),
                parent=f"00-{ids.trace}-{ids.span():016x}-{ids.flags}",
                id=ids.span(attempt.number, attempt.attempt),
            )
        )

    def run_ended(self, run: WorkloadRun, outcome: Outcome, at: float, problem: str | None) -> None:
        ids = RunIds.of(run)
        self._courier.post(
            Span(
                name=f"run {run.name}",
                start=run.started,
                end=at,
                attributes={"pyrite.workload": run.name, "pyrite.state": outcome},
                failure=_failure(outcome, problem),
                parent=self._parents.pop(run.id, None),
                id=ids.span(),
                trace=int(ids.trace, 16),
            )
        )

    def flush(self) -> bool:
        """Waits a little until all spans are sent. Returns whether they are."""
        return self._courier.flush()

    def close(self) -> None:
        """Sends the spans that are left."""
        self.unfollow()
        self._courier.close()

    def after_fork(self) -> None:
        super().after_fork()
        self._begun = {}

    def _prepare(self) -> Callable[[list[Span]], None]:
        from pyrite.telemetry.spans.exporting import exporting

        export = exporting()

        def send(spans: list[Span]) -> None:
            if spans:
                export(spans)
            self._look()

        return send

    def _look(self) -> None:
        for execution in filter(_has_stages, self.running):
            found = self._begun.get(execution.id)
            if found is not None:
                found[1].saw(read(execution.progress, []), time.time())


def _failure(outcome: Outcome, problem: str | None) -> FailureView | None:
    return FailureView(message=problem or "it failed") if outcome == "failed" else None


def _reach() -> None:
    """Raises OSError if nobody listens where spans go, as far as it is known before the libraries
    are imported."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if exporter == "otlp" and not _program_exports():
        check_reachable(
            os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
            or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
        )


def _program_exports() -> bool:
    trace, sdk = map(sys.modules.get, ("opentelemetry.trace", "opentelemetry.sdk.trace"))
    provider = getattr(sdk, "TracerProvider", None)
    if trace is None or provider is None:
        return False
    return isinstance(trace.get_tracer_provider(), provider)


def _has_stages(execution: Execution) -> bool:
    return not execution.job.is_light


def current_parent() -> str | None:
    """The span that is current on this thread, as a `traceparent`; else that of the environment."""
    trace = sys.modules.get("opentelemetry.trace")  # if nobody has imported it, there is none
    try:
        context = None if trace is None else trace.get_current_span().get_span_context()
    except Exception:  # another thread has not imported all of it yet
        context = None
    if context is None or not context.is_valid:
        return traceparent()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"
