"""The tasks of a durable job: what is fixed at submission and does not change any more.

A part is what is offered, sealed and completed. A concurrent task has one part, with any number of
peers on it. A sequential task has a part for each member of the job, with one peer on each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from pyrite.errors import InvalidDAG

Kind = Literal["concurrent", "sequential"]


class Part(NamedTuple):
    job: str
    task: str
    member: int

    def __str__(self) -> str:
        return f"part {self.member} of task {self.task!r} of job {self.job!r}"


class Upstream(NamedTuple):
    """A part at the upper end of an edge, within its job."""

    task: str
    member: int


COMPLETION: Final = "completion"
"""The name of the last task of a job, which makes its results visible. No other task has it."""

SPLITS: Final = Upstream("", 0)
"""Stands for the submission, which cuts the splits of the sources and seals their edges."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An inbound edge of a task. `source` is a task, or None for the splits of a source. Edges with
    a lower rank are read to their end first."""

    name: str
    source: str | None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    kind: Kind
    parts: int
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Workflow:
    """The tasks of a job, each after those that it reads from."""

    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        edges: set[str] = set()
        for task in self.tasks:
            for edge in task.edges:
                if edge.source is not None and edge.source not in known:
                    raise InvalidDAG(
                        f"edge {edge.name!r} of task {task.name!r} reads from {edge.source!r},"
                        " which is not a task before it; list the tasks from sources to sinks"
                    )
                if edge.name in edges:
                    raise InvalidDAG(f"two edges are named {edge.name!r}; give each its own name")
                edges.add(edge.name)
            if not task.edges:
                raise InvalidDAG(
                    f"task {task.name!r} has no inbound edge; a source needs one for its splits"
                )
            if task.name in known or not task.name:
                raise InvalidDAG(f"task {task.name!r} needs a name of its own")
            if task.parts < 1 or (task.kind == "concurrent" and task.parts != 1):
                raise InvalidDAG(
                    f"{task.kind} task {task.name!r} cannot have {task.parts} parts;"
                    " a concurrent task has one, a sequential task at least one"
                )
            known.add(task.name)

    @cached_property
    def by_name(self) -> Mapping[str, Task]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def phases(self) -> Mapping[str, int]:
        """For each task the length of the longest path to it from a source."""
        phases: dict[str, int] = {}
        for task in self.tasks:
            phases[task.name] = max(
                (phases[edge.source] + 1 for edge in task.edges if edge.source is not None),
                default=0,
            )
        return phases

    @cached_property
    def positions(self) -> Mapping[str, int]:
        return {task.name: position for position, task in enumerate(self.tasks)}

    @cached_property
    def part_count(self) -> int:
        return sum(task.parts for task in self.tasks)

    def parts_of(self, job: str) -> Iterator[Part]:
        for task in self.tasks:
            for member in range(task.parts):
                yield Part(job, task.name, member)

    def upstream(self, edge: Edge) -> tuple[Upstream, ...]:
        """The parts whose sentinels end an edge."""
        if edge.source is None:
            return (SPLITS,)
        return tuple(Upstream(edge.source, i) for i in range(self.by_name[edge.source].parts))

    def egress(self, task: str) -> Iterator[tuple[Task, Edge]]:
        """The edges that lead out of a task, with the tasks that they lead to."""
        for reader in self.tasks:
            for edge in reader.edges:
                if edge.source == task:
                    yield reader, edge

    def text(self) -> str:
        tasks = [
            [task.name, task.kind, task.parts, [[e.name, e.source, e.rank] for e in task.edges]]
            for task in self.tasks
        ]
        return json.dumps(tasks, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Workflow:
        return cls(
            tuple(
                Task(name, kind, parts, tuple(Edge(*edge) for edge in edges))
                for name, kind, parts, edges in json.loads(text)
            )
        )
