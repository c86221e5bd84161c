"""Spans as plain data: a job with its stages as children. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyrite.telemetry.spans.stages import StageTimes
from pyrite.watching.views import FailureView, RunView, VertexView

Attribute = str | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    name: str
    start: float
    end: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    failure: FailureView | None = None
    children: tuple[Span, ...] = ()
    parent: str | None = None
    """The parent as a `traceparent`; None if it is that of the environment, or if there is none.
    Only for the outermost span."""
    id: int | None = None
    """Chosen by whoever must know it in advance."""
    trace: int | None = None
    """Chosen in the same way, for a span without parent."""


def job_span(view: RunView, times: StageTimes, *, parent: str | None = None) -> Span:
    """The span of a run that has ended, with its stages."""
    end = view.submitted + view.seconds
    return Span(
        name=f"job {view.name}",
        start=view.submitted,
        end=end,
        attributes={
            "pyrite.job.name": view.name,
            "pyrite.job.id": view.job_id,
            "pyrite.job.kind": view.kind,
            "pyrite.execution.id": view.id,
            "pyrite.state": view.state,
            "pyrite.items_in": view.items_in,
            "pyrite.items_out": view.items_out,
        },
        failure=view.failure,
        children=tuple(_stages(view, times, end)),
        parent=parent,
    )


def _stages(view: RunView, times: StageTimes, end: float) -> Iterable[Span]:
    """Those that were seen on Spark and on peers; else, the vertices that run in one loop."""
    by_name = {vertex.name: vertex for vertex in view.vertices}
    for stage in times.seen:
        vertices = [name.strip() for name in stage.label.split(",")]
        known = [by_name[name] for name in vertices if name in by_name]
        yield _stage(
            view,
            stage.label,
            known,
            min(max(stage.began, view.submitted), end),
            min(stage.ended or end, end),
            {"pyrite.stage.tasks": stage.total, "pyrite.stage.tasks_done": stage.done},
        )
    if times.seen:
        return
    named: set[str] = set()
    for vertex in view.vertices:
        if vertex.name not in named:
            together = {vertex.name, *vertex.fused_with}
            named |= together
            found = [each for each in view.vertices if each.name in together]
            label = ", ".join(each.name for each in found)
            yield _stage(view, label, found, view.submitted, end, {})


def _stage(
    view: RunView,
    label: str,
    vertices: list[VertexView],
    start: float,
    end: float,
    more: Mapping[str, Attribute],
) -> Span:
    names = tuple(vertex.name for vertex in vertices)
    failure = view.failure
    is_culprit = failure is not None and failure.vertex is not None and failure.vertex in names
    return Span(
        name=f"stage {label}",
        start=start,
        end=max(start, end),
        attributes={
            "pyrite.stage.vertices": names or (label,),
            "pyrite.stage.received": vertices[0].received if vertices else 0,
            "pyrite.stage.emitted": vertices[-1].emitted if vertices else 0,
            # Vertices that run in one loop all have the time of the loop.
            "pyrite.stage.busy_seconds": max((each.busy_seconds for each in vertices), default=0.0),
            "pyrite.stage.errors": sum(each.skipped + each.dead_letters for each in vertices),
            **more,
        },
        failure=failure if is_culprit else None,
    )
