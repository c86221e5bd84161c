"""Makes a DAG from the nodes of a pipeline: names the vertices, and numbers their edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyrite.dag import DAG, Vertex, from_
from pyrite.deadlocks import deadlock_in
from pyrite.errors import InvalidDAG
from pyrite.pipeline.nodes import Node, leading_only_to, naming_line, upstream_of
from pyrite.processors.columns.joining import JoinBatches
from pyrite.processors.groups.ordering import Limit
from pyrite.processors.joins.hash_join import HashJoin
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.services.calling import CallSupplier
from pyrite.processors.splitting import Split


def compiled(ends: Iterable[Node]) -> DAG:
    """The DAG of these nodes and of all nodes that lead to them."""
    nodes = upstream_of(ends)
    names = names_of(nodes)
    branches: dict[Node, list[int]] = {node: [] for node in nodes}
    for node in nodes:
        for inlet in node.inlets:
            branches[inlet.node].append(inlet.branch)
    dag = DAG()
    vertices: dict[Node, Vertex] = {}
    emitted = dict.fromkeys(nodes, 0)
    for node in nodes:
        supplier = node.supplier
        if isinstance(supplier, Split):
            supplier = supplier.for_edges(branches[node])
        elif isinstance(supplier, StepSupplier) and isinstance(supplier.step, Limit):
            stops = tuple(names[n] for n in leading_only_to(node, nodes) if _may_be_endless(n))
            supplier = StepSupplier(replace(supplier.step, stops=stops))
        elif isinstance(supplier, HashJoin):
            supplier = replace(supplier, where=f"vertex '{names[node]}'")
        with naming_line(node):
            vertex = dag.vertex(
                names[node],
                supplier,
                local_parallelism=node.parallelism,
                on_error=node.on_error,
                retry=node.retry,
            )
            vertex.origin = node.where
            vertices[node] = vertex
            for ordinal, inlet in enumerate(node.inlets):
                edge = from_(vertices[inlet.node], emitted[inlet.node]).to(vertex, ordinal)
                emitted[inlet.node] += 1
                dag.edge(inlet.shape(edge))
    _buffer_joins(dag)
    return dag


def _may_be_endless(node: Node) -> bool:
    """Whether it may emit without end, and not in one loop with the step that follows."""
    supplier = node.supplier
    return not node.inlets or (isinstance(supplier, CallSupplier) and supplier.calls.spreads)


def _buffer_joins(dag: DAG) -> None:
    """Buffers the late edges of joins that would deadlock: where what leads to one side of a join
    also leads to the other."""
    while ring := deadlock_in(dag):
        late = [edge for edge in ring if _is_join(edge.destination.supplier)]
        if not late:
            return  # the user has set the priorities of these edges; the validation refuses them
        late[0].buffered()


def _is_join(supplier: object) -> bool:
    return isinstance(supplier, HashJoin) or (
        isinstance(supplier, StepSupplier) and isinstance(supplier.step, JoinBatches)
    )


def names_of(nodes: Sequence[Node]) -> dict[Node, str]:
    """The names of the vertices. If a name is taken, the next one is `filter-2`; the user must give
    each name only once."""
    taken: dict[str, Node] = {}
    names: dict[Node, str] = {}
    for node in nodes:
        if node.given:
            if node.name in taken:
                raise InvalidDAG(
                    f"the name '{node.name}' is given to two steps, in {taken[node.name].where} "
                    f"and in {node.where}; give each step its own name"
                )
            taken[node.name], names[node] = node, node.name
    for node in nodes:
        if not node.given:
            name, number = node.name, 1
            while name in taken:
                number += 1
                name = f"{node.name}-{number}"
            taken[name], names[node] = node, name
    return names
