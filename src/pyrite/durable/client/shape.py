"""What a job looks like, for people: its vertices and edges, the tasks that they make, and who
submitted it. It is kept in the store, so that other processes can draw the job, also later."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from pyrite.durable.planning.tasks import PlannedJob
from pyrite.durable.protocol.workflow import COMPLETION
from pyrite.job import Job
from pyrite.watching.observing import step_text
from pyrite.whereabouts import name_from

MOST_CHARACTERS: Final = 400_000
"""A node can hold 1 MB. Of a DAG that needs more than this, the steps and origins are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeVertex:
    name: str
    task: str
    """The task that it is a part of."""
    step: str = ""
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeEdge:
    source: str
    destination: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    job_id: str = ""
    host: str = ""
    pid: int = 0
    """The process that submitted it."""
    vertices: tuple[ShapeVertex, ...] = ()
    edges: tuple[ShapeEdge, ...] = ()
    tasks: tuple[tuple[str, int], ...] = ()
    """The name of each task, and how many parts it has."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """By the name of an edge in the workflow, what people call it."""

    def text(self) -> str | None:
        """As a node holds it; None if the DAG is too large for one."""
        text = json.dumps(asdict(self), separators=(",", ":"))
        if len(text) > MOST_CHARACTERS:
            small = tuple(replace(each, step="", origin=None) for each in self.vertices)
            text = json.dumps(asdict(replace(self, vertices=small)), separators=(",", ":"))
        return text if len(text) <= MOST_CHARACTERS else None

    @classmethod
    def read(cls, text: str) -> Shape:
        found = json.loads(text)
        return cls(
            **{
                **found,
                "vertices": tuple(ShapeVertex(**each) for each in found["vertices"]),
                "edges": tuple(ShapeEdge(**each) for each in found["edges"]),
                "tasks": tuple((name, parts) for name, parts in found["tasks"]),
            }
        )


def shape_of(job: Job, planned: PlannedJob) -> Shape:
    task_of = {name: task.name for name, task in planned.task_of.items()}
    edges = [edge for vertex in planned.topology.vertices for edge in vertex.outbound]
    return Shape(
        job_id=job.id,
        host=socket.gethostname(),
        pid=os.getpid(),
        vertices=tuple(
            ShapeVertex(
                name=each.name,
                task=task_of[each.name],
                step=step_text(each),
                origin=each.origin,
            )
            for each in job.dag
        ),
        edges=tuple(
            ShapeEdge(
                source=edge.source,
                destination=edge.destination,
                label=edge.settings.describe(),
            )
            for edge in edges
        ),
        tasks=tuple((task.name, task.parts) for task in planned.workflow.tasks),
        queues=dict(_queue_labels(planned)),
    )


def _queue_labels(planned: PlannedJob) -> Iterator[tuple[str, str]]:
    for task in planned.tasks:
        names = name_from([vertex.name for vertex in task.vertices])
        for name, edge in task.inbound.items():
            source = "the start" if edge is None else edge.source or "the splits"
            yield name, f"{source} → {names if edge is None else edge.destination}"
        yield task.to_completion, f"{names} → {COMPLETION}"
