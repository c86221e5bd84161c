"""The numbers that a job's parts, queues and edges have inside the storage. They follow from the
job's workflow, so every process counts the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.queues import QueuesError

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Numbering:
    """`parts` has the number of each part by task and member, `queues` the number of the queue of
    each of its edges. All edges of a concurrent part have the same queue. `edges` has the names of
    the edges by number, `edge_numbers` the reverse. `concurrent` has the names of the concurrent
    tasks, `shared` the numbers of their queues."""

    parts: Mapping[Place, int]
    queues: Mapping[Place, Mapping[str, int]]
    edges: tuple[str, ...]
    edge_numbers: Mapping[str, int]
    concurrent: frozenset[str]
    shared: frozenset[int]

    def part(self, part: Part) -> int:
        number = self.parts.get((part.task, part.member))
        if number is None:
            raise QueuesError(f"{part} is not in the job's workflow. This is a bug of Pyrite")
        return number

    def queue(self, part: Part, edge: str) -> int:
        number = self.queues.get((part.task, part.member), {}).get(edge)
        if number is None:
            raise QueuesError(f"{part} has no inbound edge {edge!r}. This is a bug of Pyrite")
        return number

    def queues_of(self, part: Part) -> set[int]:
        self.part(part)
        return set(self.queues[part.task, part.member].values())

    def by_edges(self) -> dict[tuple[str, tuple[str, ...]], list[int]]:
        """The queues of each task and edge, in the order of the workflow. The edges of a concurrent
        task have one queue, so they are together."""
        found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for (task, _), queues in self.queues.items():
            if task in self.concurrent:
                found[task, tuple(queues)] = [next(iter(queues.values()))]
            else:
                for edge, number in queues.items():
                    found.setdefault((task, (edge,)), []).append(number)
        return found

    def shared_queue(self, part: Part) -> int:
        """The queue of a concurrent part."""
        if part.task not in self.concurrent:
            raise QueuesError(
                f"{part} is not concurrent: it reads its queues in order. This is a bug of Pyrite"
            )
        return next(iter(self.queues_of(part)))


def numbering(workflow: Workflow) -> Numbering:
    parts: dict[Place, int] = {}
    queues: dict[Place, dict[str, int]] = {}
    count = 0
    for task in workflow.tasks:
        for member in range(task.parts):
            parts[task.name, member] = len(parts)
            own = queues[task.name, member] = {}
            for edge in task.edges:
                if not own or task.kind == "sequential":
                    count += 1
                own[edge.name] = count - 1
    edges = tuple(edge.name for task in workflow.tasks for edge in task.edges)
    concurrent = frozenset(task.name for task in workflow.tasks if task.kind == "concurrent")
    return Numbering(
        parts,
        queues,
        edges,
        {name: number for number, name in enumerate(edges)},
        concurrent,
        frozenset(number for task in concurrent for number in queues[task, 0].values()),
    )
