"""The view of an execution now: its DAG, its metrics and how it ended."""

from __future__ import annotations

import functools
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyrite.dag import DAG, Vertex
from pyrite.errors import JobFailed
from pyrite.functions import describe, message_of, shorten, shorten_text
from pyrite.job import Execution, Job, JobStatus
from pyrite.processors.loops.steps import Step
from pyrite.tracebacks import users_traceback
from pyrite.watching.secrets import without_secrets
from pyrite.watching.views import (
    EdgeView,
    FailureView,
    HeavyKey,
    Kind,
    MemberView,
    ProcessorView,
    RunState,
    RunView,
    StageView,
    VertexState,
    VertexView,
)
from pyrite.whereabouts import name_from

MOST_PROCESSORS: Final = 64
"""A vertex on Spark has one processor for each task, of which there may be thousands."""

LONGEST_STEP: Final = 300
LONGEST_TEXT: Final = 20_000


def view_of(execution: Execution, *, asks: bool = True) -> RunView:
    """What is known of the execution now. It never raises: what cannot be read is left out. Without
    `asks`, all is left out that is not known here; so it never waits for a server."""
    known = read if asks else _left_out
    status = execution.status
    metrics: Mapping[str, Any] = known(execution.metrics, {})
    error = execution.exception(0) if execution.done() else None
    failure = None if error is None or execution.cancelled() else failure_of(error)
    job = execution.job
    return RunView(
        id=execution.id,
        job_id=job.id,
        name=name_of(job),
        kind=_kind(execution),
        state=_STATES[status],
        submitted=execution.submitted,
        ended=execution.ended,
        seen=time.time(),
        host=_host(),
        pid=os.getpid(),
        vertices=tuple(_vertices(job.dag, metrics, status, failure)),
        edges=tuple(_edges(job.dag, metrics)),
        stages=tuple(
            StageView(label=label, done=done, total=total)
            for label, done, total in known(execution.progress, [])
        ),
        members=tuple(
            MemberView(
                member=str(each["member"]),
                host=each.get("host", ""),
                pid=each.get("pid", 0),
                memory_bytes=each.get("memory_bytes", 0),
            )
            for each in known(execution.members, [])
        ),
        timings=known(execution.timings, {}),
        waits_for=known(execution.waits_for, None),
        failure=failure,
        page=known(execution.page, None),
    )


def _vertices(
    dag: DAG, metrics: Mapping[str, Any], status: JobStatus, failure: FailureView | None
) -> Iterator[VertexView]:
    for each in dag:
        found = metrics.get(each.name)
        step, origin = step_text(each), each.origin
        yield vertex_view(each.name, found, status, failure, step=step, origin=origin)
    if not dag.vertices:  # of a job that another process submitted
        for name, found in metrics.items():
            yield vertex_view(name, found, status, failure)


def _edges(dag: DAG, metrics: Mapping[str, Any]) -> Iterator[EdgeView]:
    for edge in dag.edges:
        source, destination = edge.source.name, edge.destination.name
        label, waiting = edge.settings.describe(), _waiting(metrics.get(destination), source)
        yield EdgeView(source=source, destination=destination, label=label, **waiting)
    if not dag.vertices:
        for name, found in metrics.items():
            for source in found.get("inbound", {}):
                waiting = _waiting(found, source)
                yield EdgeView(source=source, destination=name, label="", **waiting)


def name_of(job: Job) -> str:
    """The name of a job, the same for all its runs. One that has none is named after its first and
    its last vertex."""
    if job.config.name is not None:
        return job.config.name
    # The DAG of a job that another process submitted may be empty.
    return name_from([vertex.name for vertex in job.dag]) or job.name


def failure_of(error: BaseException) -> FailureView:
    """An error as a person reads it. Its texts may be long, and may name URLs with passwords."""
    if not isinstance(error, JobFailed):
        return FailureView(message=_shown(message_of(error)))
    cause = error.__cause__
    return FailureView(
        message=_shown(str(error)),
        vertex=error.vertex,
        edge=error.edge,
        item=None if error.item is None else without_secrets(shorten(error.item, 2000)),
        traceback="" if cause is None else _shown(users_traceback(cause)),
    )


def _shown(text: str) -> str:
    """Without its middle if it is long: the last line of a traceback says most."""
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]}…\n…{text[-half:]}"
    return without_secrets(text)


_STATES: Final[Mapping[JobStatus, RunState]] = {
    JobStatus.STARTING: "starting",
    JobStatus.RUNNING: "running",
    JobStatus.COMPLETED: "completed",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "cancelled",
}


def vertex_view(
    name: str,
    found: Mapping[str, Any] | None,
    status: JobStatus,
    failure: FailureView | None,
    *,
    step: str = "",
    origin: str | None = None,
) -> VertexView:
    """A vertex, by the metrics that were found of it."""
    numbers = found or {}
    parts = numbers.get("processors", ())
    busiest = sorted(parts, key=lambda part: -part["received"] - part["emitted"])
    return VertexView(
        name=name,
        state=_vertex_state(numbers, status, failure is not None and failure.vertex == name),
        received=numbers.get("received", 0),
        emitted=numbers.get("emitted", 0),
        skipped=numbers.get("skipped", 0),
        dead_letters=numbers.get("dead_letters", 0),
        queue_fill=numbers.get("queue_fill", 0),
        busy_seconds=numbers.get("busy_seconds", 0.0),
        held_bytes=numbers.get("held_bytes", 0),
        spilled_bytes=numbers.get("spilled_bytes", 0),
        skew=skew_of([part["received"] or part["emitted"] for part in parts]),
        heaviest_keys=tuple(
            HeavyKey(edge=edge, key=key, count=count, share=share)
            for edge, key, count, share in numbers.get("heaviest_keys", ())
        ),
        processors=tuple(
            ProcessorView(
                received=part["received"],
                emitted=part["emitted"],
                busy_seconds=part["busy_seconds"],
            )
            for part in busiest[:MOST_PROCESSORS]
        ),
        processor_count=len(parts),
        fused_with=tuple(numbers.get("fused_with", ())),
        step=step,
        origin=origin,
    )


def skew_of(counts: list[int]) -> float:
    """The largest count, divided by the mean.

    >>> skew_of([2, 2, 2]), skew_of([9, 0, 0]), skew_of([]), skew_of([0, 0])
    (1.0, 3.0, 1.0, 1.0)
    """
    total = sum(counts)
    return max(counts) * len(counts) / total if total else 1.0


def _vertex_state(numbers: Mapping[str, Any], status: JobStatus, is_culprit: bool) -> VertexState:
    parts = numbers.get("processors", ())
    if status is JobStatus.COMPLETED:
        return "completed"
    if is_culprit:
        return "failed"
    if parts and numbers.get("done", 0) >= len(parts):
        return "completed"
    if status in (JobStatus.FAILED, JobStatus.CANCELLED):
        return "cancelled"
    has_moved = numbers.get("received", 0) or numbers.get("emitted", 0)
    return "running" if has_moved or numbers.get("queue_fill", 0) else "waiting"


def _waiting(numbers: Mapping[str, Any] | None, source: str) -> dict[str, int]:
    found = (numbers or {}).get("inbound", {}).get(source, {})
    return {"fill": found.get("fill", 0), "capacity": found.get("capacity", 0)}


def _kind(execution: Execution) -> Kind:
    job = execution.job
    if job.is_durable:
        return "durable"
    if not job.is_light:
        return "normal"
    return "light" if execution.runs_here else "light on members"


def step_text(vertex: Vertex) -> str:
    """What a vertex runs, in short and without secrets. It costs little, also if the step holds a
    million items: all who watch ask for it again and again."""
    text = _texts.get(vertex)
    if text is None:
        text = _texts[vertex] = without_secrets(_step_text(vertex))
    return text


_texts: Final[WeakKeyDictionary[Vertex, str]] = WeakKeyDictionary()


def _step_text(vertex: Vertex) -> str:
    step: Any = getattr(vertex.supplier, "step", None)
    if step is None:
        step = vertex.supplier
    elif isinstance(step, Step):
        step = step.without_secrets()
    if isinstance(step, functools.partial):
        return describe(step)
    # A class with a repr of its own may hide something.
    is_plain = is_dataclass(step) and hasattr(type(step).__repr__, "__wrapped__")
    if not is_plain or isinstance(step, type):
        return shorten(step, LONGEST_STEP)
    parts = [f"{f.name}={_short(getattr(step, f.name))}" for f in fields(step) if f.repr]
    return shorten_text(f"{type(step).__name__}({', '.join(parts)})", LONGEST_STEP)


def _short(value: Any) -> str:
    return describe(value) if callable(value) else shorten(value)


def _left_out(reading: Any, instead: Any) -> Any:
    return instead


def read(reading: Any, instead: Any) -> Any:
    """What a method of an execution returns, or something else if it cannot be read now."""
    try:
        return reading()
    except Exception:  # the session has just ended, the store is not reachable
        return instead


@cache
def _host() -> str:
    return socket.gethostname()
