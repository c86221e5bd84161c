"""Cuts a DAG into tasks: the vertices between distributed edges, which one peer runs together.

Each section of the job is divided into its connected parts, and each of these is a task. A task of
transforms alone is concurrent: it does not matter which peer gets which message. All others are
sequential, with one part for each member of the job. A last task completes the job: every task has
an edge to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from pyrite.dag import EdgeSettings, Pattern
from pyrite.durable.protocol.workflow import COMPLETION, Edge, Kind, Task, Workflow
from pyrite.engine.fusion import step_of
from pyrite.engine.plan import EdgePlan, Topology, VertexPlan
from pyrite.exchange.sections import Section, plan_sections
from pyrite.processors.loops.steps import Transform

SPARK: Final = "spark"
"""The name of the only task, but for the completion, of a job that runs on Spark."""
LONGEST_LABEL: Final = 60


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """The vertices of a task, and by the name of each inbound edge in the workflow the edge of the
    plan that it stands for. The edge that starts a task of the user's own sources stands for
    none."""

    name: str
    kind: Kind
    vertices: tuple[VertexPlan, ...]
    inbound: Mapping[str, EdgePlan | None]
    ranks: Mapping[str, int]
    to_completion: str
    """The name of its edge to the completion."""

    @property
    def outbound(self) -> Iterator[EdgePlan]:
        """The edges that lead to other tasks."""
        here = {vertex.name for vertex in self.vertices}
        for vertex in self.vertices:
            yield from (edge for edge in vertex.outbound if edge.destination not in here)


@dataclass(frozen=True)
class PlannedJob:
    topology: Topology
    tasks: tuple[PlannedTask, ...]

    @cached_property
    def by_name(self) -> Mapping[str, PlannedTask]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def task_of(self) -> Mapping[str, PlannedTask]:
        """The task of each vertex."""
        return {vertex.name: task for task in self.tasks for vertex in task.vertices}

    @cached_property
    def workflow(self) -> Workflow:
        members = self.topology.member_count
        tasks = [
            Task(
                task.name,
                task.kind,
                1 if task.kind == "concurrent" else members,
                tuple(
                    Edge(name, self._source(edge), task.ranks[name])
                    for name, edge in task.inbound.items()
                ),
            )
            for task in self.tasks
        ]
        ends = tuple(Edge(task.to_completion, task.name) for task in self.tasks)
        return Workflow((*tasks, Task(COMPLETION, "sequential", 1, ends)))

    def _source(self, edge: EdgePlan | None) -> str | None:
        return self.task_of[edge.source].name if edge is not None and edge.source else None


def plan_tasks(topology: Topology, suppliers: Mapping[str, Any]) -> PlannedJob:
    """`suppliers` has what each vertex runs, where the steps of sources that were cut into splits
    are transforms; see `with_splits`."""
    tasks: list[PlannedTask] = []
    for section in plan_sections(topology, suppliers):
        for vertices in _connected(section.vertices):
            tasks.append(_task(len(tasks), vertices, section, suppliers))
    return PlannedJob(topology, tuple(tasks))


def plan_spark(topology: Topology) -> PlannedJob:
    """A DAG that runs on Spark as a whole: one task of one part, which one peer drives. The
    topology has one member."""
    start = f"start {SPARK}"
    task = PlannedTask(
        SPARK, "sequential", topology.vertices, {start: None}, {start: 0}, f"done {SPARK}"
    )
    return PlannedJob(topology, (task,))


def with_splits(topology: Topology, sources: Sequence[str]) -> Topology:
    """The topology with an inbound edge for each of these sources, on which its splits arrive."""
    number = 1 + max(
        (edge.id for vertex in topology.vertices for edge in vertex.outbound), default=-1
    )
    vertices = []
    for vertex in topology.vertices:
        if vertex.name in sources:
            distributed = topology.member_count > 1
            edge = EdgePlan(number, "", 0, vertex.name, 0, EdgeSettings(), distributed)
            vertices.append(replace(vertex, inbound=(edge,)))
            number += 1
        else:
            vertices.append(vertex)
    return replace(topology, vertices=tuple(vertices))


def edge_name(edge: EdgePlan) -> str:
    """The name of an edge in the workflow."""
    return f"edge{edge.id}"


def _task(
    index: int, vertices: tuple[VertexPlan, ...], section: Section, suppliers: Mapping[str, Any]
) -> PlannedTask:
    here = {vertex.name for vertex in vertices}
    arriving = [edge for vertex in vertices for edge in vertex.inbound if edge.source not in here]
    inbound: dict[str, EdgePlan | None] = {edge_name(edge): edge for edge in arriving}
    ranks = {edge_name(edge): section.ranks[edge.id] for edge in arriving}
    if not inbound:  # only sources of the user's: nothing comes but the order to start
        inbound, ranks = {f"start{index}": None}, {f"start{index}": 0}
    label = " + ".join(vertex.name for vertex in vertices)
    label = label.encode("utf-8", "replace").decode()  # it becomes the name of a node
    if len(label) > LONGEST_LABEL:
        label = f"{label[:LONGEST_LABEL]}..."
    task = PlannedTask(f"{label} #{index}", "sequential", vertices, inbound, ranks, f"done{index}")
    return replace(task, kind="concurrent") if _is_concurrent(task, arriving, suppliers) else task


def _is_concurrent(
    task: PlannedTask, arriving: Sequence[EdgePlan], suppliers: Mapping[str, Any]
) -> bool:
    """Whether any peer can run the task on any message. An edge that is not distributed keeps items
    on their member, so it needs parts that belong to members. A vertex that reads one edge after
    another holds items back until the input ends, so it has a state."""
    return (
        bool(arriving)
        and all(isinstance(step_of(suppliers[v.name]), Transform) for v in task.vertices)
        and len(set(task.ranks.values())) == 1
        and all(len({edge.settings.priority for edge in v.inbound}) == 1 for v in task.vertices)
        and all(edge.is_distributed for edge in (*arriving, *task.outbound))
        and all(edge.settings.pattern is not Pattern.BROADCAST for edge in arriving)
    )


def _connected(vertices: Sequence[VertexPlan]) -> list[tuple[VertexPlan, ...]]:
    """The vertices of a section in groups that edges connect."""
    group: dict[str, list[VertexPlan]] = {vertex.name: [vertex] for vertex in vertices}
    for vertex in vertices:
        for edge in vertex.outbound:
            if edge.destination in group:
                first, second = group[vertex.name], group[edge.destination]
                if first is not second:
                    first += second
                    group.update({other.name: first for other in second})
    order = {vertex.name: position for position, vertex in enumerate(vertices)}
    groups = {id(each): each for each in group.values()}.values()
    return [tuple(sorted(each, key=lambda vertex: order[vertex.name])) for each in groups]
