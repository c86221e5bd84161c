"""Random DAGs, and a reference interpreter that computes their expected results.

The vertices are chosen so that the result does not depend on which processor gets an item, except
where the pattern of the edge decides it. So the reference needs no knowledge of the engine, only of
the guarantees of each pattern.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pyrite import DAG, AbstractProcessor, from_
from pyrite import processors as p

PATTERNS = ("unicast", "broadcast", "partitioned", "all_to_one", "isolated")


@dataclass(frozen=True)
class Node:
    """A vertex: a source of some items, a step of some kind, or (last) a sink."""

    kind: str
    parallelism: int
    parents: tuple[tuple[int, str, int], ...] = ()
    """(parent, pattern, priority) of each inbound edge."""
    items: tuple[int, ...] = ()
    distributed: bool = False
    small_queues: bool = False


@dataclass(frozen=True)
class Picture:
    """A description of a DAG, which can be built any number of times. Each node comes after its
    parents."""

    nodes: tuple[Node, ...]

    def build(self, sink: str = "out") -> DAG:
        dag = DAG()
        vertices = [
            dag.vertex(f"v{i}", supplier_of(node), local_parallelism=node.parallelism)
            for i, node in enumerate(self.nodes)
        ]
        ends = [
            i
            for i, node in enumerate(self.nodes)
            if not any(i == q for n in self.nodes for q, _, _ in n.parents)
        ]
        next_ordinal: Counter[int] = Counter()
        for i, node in enumerate(self.nodes):
            for ordinal, (parent, pattern, priority) in enumerate(node.parents):
                edge = from_(vertices[parent], next_ordinal[parent]).to(vertices[i], ordinal)
                next_ordinal[parent] += 1
                if pattern == "partitioned":
                    edge.partitioned(key=lambda n: n % 7)
                else:
                    getattr(edge, pattern)()
                if node.distributed and pattern != "isolated":
                    edge.distributed()
                if priority:
                    edge.priority(priority).buffered()
                if node.small_queues:
                    edge.config(queue_size=3, high_water_mark=2)
                dag.edge(edge)
        for position, end in enumerate(ends):
            sink_vertex = dag.vertex(
                f"sink{position}", p.write_list(f"{sink}{end}"), local_parallelism=1
            )
            dag.edge(from_(vertices[end], 0).to(sink_vertex))
        return dag

    def ends(self) -> list[int]:
        return [
            i
            for i in range(len(self.nodes))
            if not any(i == q for n in self.nodes for q, _, _ in n.parents)
        ]

    def expected(self, members: int = 1) -> dict[int, Counter[Any]]:
        """The expected items of each sink, as multisets, by the number of the vertex before the
        sink."""
        out: list[Counter[Any]] = []
        for node in self.nodes:
            arrived: Counter[Any] = Counter()
            for parent, pattern, _ in node.parents:
                # A local broadcast reaches the processors of the emitting member, a distributed one
                # those of all.
                copies = (
                    node.parallelism * (members if node.distributed else 1)
                    if pattern == "broadcast"
                    else 1
                )
                for item, count in out[parent].items():
                    arrived[item] += count * copies
            out.append(applied(node, arrived))
        return {end: out[end] for end in self.ends()}


def applied(node: Node, arrived: Counter[Any]) -> Counter[Any]:
    """The items that a vertex emits for its input items."""
    if node.kind == "source":
        return Counter(node.items)
    result: Counter[Any] = Counter()
    for item, count in arrived.items():
        if node.kind in ("map", "custom map"):
            result[item + 1] += count
        elif node.kind == "filter":
            result[item] += count if item % 3 else 0
        elif node.kind in ("flat_map", "custom flat map"):
            for each in range(item % 3):
                result[item + each] += count
        else:
            result[item] += count
    return +result


class AddOne(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> bool:
        self.emit(item + 1)
        return True


class Repeat(AbstractProcessor):
    def __init__(self) -> None:
        self.repeat = self.flat_mapper(lambda n: range(n, n + n % 3))

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        return self.repeat(item)


class Hold(AbstractProcessor):
    """Emits nothing until its input ends, then all items."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.rest = iter(self.held)

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.held.append(item)

    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


class SlowThread(AddOne):
    cooperative = False

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        self.emit(item)
        return True


def supplier_of(node: Node) -> Any:
    return {
        "source": lambda: p.read_items(list(node.items)),
        "map": lambda: p.map(lambda n: n + 1),
        "filter": lambda: p.filter(lambda n: n % 3),
        "flat_map": lambda: p.flat_map(lambda n: range(n, n + n % 3)),
        "noop": p.noop,
        "custom map": lambda: AddOne,
        "custom flat map": lambda: Repeat,
        "hold": lambda: Hold,
        "thread": lambda: SlowThread,
    }[node.kind]()


KINDS = ("map", "filter", "flat_map", "noop", "custom map", "custom flat map", "hold", "thread")


@st.composite
def pictures(draw: st.DrawFn, *, most_vertices: int = 6, distributed: bool = False) -> Picture:
    """Random DAGs of sources and steps, with every pattern, ordinals, priorities and parallelism 1
    to 4."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(2, most_vertices))):
        parallelism = draw(st.integers(1, 4))
        if i == 0 or draw(st.integers(0, 4)) == 0:
            items = tuple(draw(st.lists(st.integers(0, 50), max_size=30)))
            nodes.append(Node("source", parallelism, items=items))
            continue
        parents = draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3, unique=True))
        edges = tuple(
            (q, draw(st.sampled_from(PATTERNS)), draw(st.integers(0, 2))) for q in parents
        )
        nodes.append(
            Node(
                draw(st.sampled_from(KINDS)),
                parallelism,
                edges,
                distributed=distributed and draw(st.booleans()),
                small_queues=draw(st.booleans()),
            )
        )
    return Picture(tuple(nodes))
