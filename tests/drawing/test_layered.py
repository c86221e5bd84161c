"""Layouts in layers: nothing overlaps, edges point down, few cross, always the same."""

from __future__ import annotations

import time
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as some

from pyrite.drawing.layered import Place, layout
from pyrite.drawing.layered.ordering import crossings, ordered
from pyrite.drawing.layered.ranks import ranks, without_cycles
from tests.drawing.graphs import Edge, dags, random_dag

sizes = some.tuples(some.integers(20, 200), some.integers(10, 60))


def overlap(a: Place, b: Place) -> bool:
    return (
        a.x < b.x + b.width - 1e-6
        and b.x < a.x + a.width - 1e-6
        and a.y < b.bottom - 1e-6
        and b.y < a.bottom - 1e-6
    )


@given(graph=dags(), data=some.data())
def test_no_box_or_label_lies_on_another_one(
    graph: tuple[int, list[Edge]], data: some.DataObject
) -> None:
    count, edges = graph
    boxes = data.draw(some.lists(sizes, min_size=count, max_size=count))
    labels = data.draw(some.lists(some.none() | sizes, min_size=len(edges), max_size=len(edges)))
    found = layout(boxes, edges, labels)
    written = [route.label for route in found.routes if route.label is not None]
    assert len(written) == sum(label is not None for label in labels)
    assert not any(overlap(a, b) for a, b in combinations([*found.places, *written], 2))


@given(graph=dags())
def test_every_edge_points_down_from_the_bottom_of_a_box_to_the_top_of_another(
    graph: tuple[int, list[Edge]],
) -> None:
    count, edges = graph
    found = layout([(80, 30)] * count, edges)
    for (source, destination), route in zip(edges, found.routes):
        heights = [y for _, y in route.points]
        assert heights == sorted(heights)
        assert heights[0] == found.places[source].bottom < heights[-1]
        assert heights[-1] == found.places[destination].y


@given(graph=dags())
def test_everything_is_inside_the_picture(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    found = layout([(80, 30)] * count, edges, [(50, 12)] * len(edges))
    inside = [(p.x, p.y) for p in found.places]
    inside += [(p.x + p.width, p.bottom) for p in found.places]
    inside += [point for route in found.routes for point in route.points]
    assert all(-1e-6 <= x <= found.width + 1e-6 for x, _ in inside)
    assert all(-1e-6 <= y <= found.height + 1e-6 for _, y in inside)


@given(graph=dags())
def test_a_layout_is_always_the_same(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    assert layout([(80, 30)] * count, edges) == layout([(80, 30)] * count, edges)


@given(graph=dags(most=40))
def test_at_most_as_many_edges_cross_as_in_the_order_given(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    rank = ranks(count, edges)
    layers = [[n for n in range(count) if rank[n] == r] for r in range(min(rank), max(rank) + 1)]
    short = [(a, b) for a, b in edges if rank[b] == rank[a] + 1]
    below = [[b for a, b in short if a == n] for n in range(count)]
    above = [[a for a, b in short if b == n] for n in range(count)]
    found = ordered(layers, above, below)
    assert [sorted(layer) for layer in found] == layers
    assert by_hand(found, short) == crossings(found, below) <= by_hand(layers, short)


def by_hand(layers: list[list[int]], edges: list[Edge]) -> int:
    place = {n: (r, i) for r, layer in enumerate(layers) for i, n in enumerate(layer)}
    ends = [(place[a], place[b]) for a, b in edges]
    return sum(
        a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0
        for (a, b), (c, d) in combinations(ends, 2)
    )


def test_crossings_that_can_be_avoided_are_avoided() -> None:
    edges = [(0, 5), (1, 4), (2, 3), (5, 6), (4, 7), (3, 8)]
    found = layout([(50, 20)] * 9 + [(50, 20)], [*edges, (6, 9), (7, 9), (8, 9)])
    places = found.places
    columns = [[0, 5, 6], [1, 4, 7], [2, 3, 8]]
    assert all(len({round(places[n].x) for n in column}) == 1 for column in columns)


@given(count=some.integers(1, 8), data=some.data())
def test_a_graph_with_cycles_has_a_layout_too(count: int, data: some.DataObject) -> None:
    some_vertex = some.integers(0, count - 1)
    edges = data.draw(some.lists(some.tuples(some_vertex, some_vertex), max_size=16))
    found = layout([(80, 30)] * count, edges)
    assert not any(overlap(a, b) for a, b in combinations(found.places, 2))
    turned = [n for n, (a, b) in enumerate(without_cycles(count, edges)) if (a, b) != edges[n]]
    for n, route in enumerate(found.routes):
        heights = [y for _, y in route.points]
        assert heights == sorted(heights, reverse=n in turned)


def test_parts_that_are_not_connected_are_put_into_rows() -> None:
    found = layout([(100, 30)] * 100, [])
    assert 0.5 < found.width / found.height < 4


def test_1000_vertices_take_less_than_a_second() -> None:
    for edges in (1000, 3000):
        start = time.process_time()
        layout([(120, 40)] * 1000, random_dag(1000, edges))
        assert time.process_time() - start < 1
