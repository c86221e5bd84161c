"""The layer of each vertex: every edge goes from a layer to one further down."""

from __future__ import annotations

from collections.abc import Sequence

Edge = tuple[int, int]


def without_cycles(count: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges, with those turned round that close a cycle, in the same order. An edge from a
    vertex to itself stays as it is."""
    below: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for n, (source, destination) in enumerate(edges):
        if source != destination:
            below[source].append((n, destination))
    found = list(edges)
    unseen, open_, closed = 0, 1, 2
    state = [unseen] * count
    for root in range(count):
        if state[root] != unseen:
            continue
        state[root] = open_
        path = [(root, iter(below[root]))]
        while path:
            vertex, rest = path[-1]
            for n, other in rest:
                if state[other] == open_:
                    found[n] = (other, vertex)
                elif state[other] == unseen:
                    state[other] = open_
                    path.append((other, iter(below[other])))
                    break
            else:
                state[vertex] = closed
                path.pop()
    return found


def ranks(count: int, edges: Sequence[Edge], *, step: int = 1) -> list[int]:
    """The layer of each vertex of a graph without cycles. An edge spans at least `step` layers. A
    vertex with more edges below than above is moved down to them, so that its edges are short."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, destination in edges:
        if source != destination:
            below[source].append(destination)
            above[destination].append(source)
    order = in_order(count, edges)
    rank = [0] * count
    for vertex in order:
        rank[vertex] = max((rank[other] + step for other in above[vertex]), default=0)
    for vertex in reversed(order):
        if below[vertex] and len(above[vertex]) < len(below[vertex]):
            rank[vertex] = min(rank[other] - step for other in below[vertex])
    return rank


def in_order(count: int, edges: Sequence[Edge]) -> list[int]:
    """The vertices of a graph without cycles: each after those above it."""
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, destination in edges:
        if source != destination:
            below[source].append(destination)
            missing[destination] += 1
    order = [vertex for vertex in range(count) if not missing[vertex]]
    for vertex in order:  # grows while it is read
        for other in below[vertex]:
            missing[other] -= 1
            if not missing[other]:
                order.append(other)
    return order
