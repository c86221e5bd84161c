"""The graph behind the stages of a pipeline: one node for each vertex that it will have."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyrite.bad_records import FAIL, ErrorPolicy, checked_policy
from pyrite.dag import Vertex
from pyrite.errors import InvalidDAG
from pyrite.pipeline.edges import Shape, side_by_side
from pyrite.processors.transforms import noop
from pyrite.retries import Retry, checked_retry

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Inlet:
    """What a node reads: the output of another node. `branch` is for a split, which has two."""

    node: Node
    shape: Shape
    branch: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """A vertex to be. `where` is the line of the user's file that added it. A name that is not
    `given` gets a number if another vertex has it."""

    name: str
    given: bool = False
    supplier: Any
    inlets: tuple[Inlet, ...] = ()
    where: str
    parallelism: int = -1
    on_error: ErrorPolicy = FAIL
    retry: Retry | None = None
    number: int = field(default_factory=lambda: next(_numbers))
    """A node has a higher number than the nodes that it reads."""

    def __post_init__(self) -> None:
        """Raises InvalidDAG, with the user's line, if no vertex can be made of it."""
        checked_policy(self.on_error, f"'{self.name}' in {self.where}")
        checked_retry(self.retry, f"'{self.name}' in {self.where}")
        with naming_line(self):
            Vertex(self.name, self.supplier, local_parallelism=self.parallelism)


@contextmanager
def naming_line(node: Node) -> Iterator[None]:
    """An InvalidDAG that is raised inside the block says where the node was added."""
    try:
        yield
    except InvalidDAG as error:
        if node.where not in str(error):
            error.args = (f"{error} (added in {node.where})",)
        raise


def upstream_of(ends: Iterable[Node]) -> list[Node]:
    """The nodes, and all nodes that lead to them, in the order in which they were added."""
    found: set[Node] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(inlet.node for inlet in node.inlets)
    return sorted(found, key=lambda node: node.number)


def leading_only_to(end: Node, nodes: Iterable[Node]) -> list[Node]:
    """Those of the nodes, in order, whose items all lead to `end` and nowhere else."""
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for inlet in node.inlets:
            readers.setdefault(inlet.node, []).append(node)
    inside = {end}
    for node in reversed(upstream_of([end])):
        if all(reader in inside for reader in readers.get(node, ())):
            inside.add(node)
    return [node for node in upstream_of([end]) if node in inside and node is not end]


def separate(inlets: Iterable[Inlet], where: str) -> tuple[Inlet, ...]:
    """The inlets of one node, so that each reads another node: a DAG has at most one edge between
    two vertices. A node that is read again is read through another one, which passes its items."""
    seen: set[Node] = set()
    found = []
    for inlet in inlets:
        if inlet.node in seen:
            again = Node(
                name=f"{inlet.node.name}-again",
                supplier=noop(),
                inlets=(Inlet(inlet.node, side_by_side, inlet.branch),),
                where=where,
            )
            found.append(Inlet(again, inlet.shape))
        else:
            seen.add(inlet.node)
            found.append(inlet)
    return tuple(found)
