"""The layout of a graph: a place for each box, a route for each edge, and a place for its label.
Boxes and labels do not overlap, and edges point down. It is pure, and the same graph always has the
same layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Final

from pyrite.drawing.layered.ordering import Layers, ordered
from pyrite.drawing.layered.placing import placed
from pyrite.drawing.layered.ranks import Edge, ranks, without_cycles

Size = tuple[float, float]
Point = tuple[float, float]

GAP_BETWEEN_BOXES: Final = 28.0
GAP_BETWEEN_PARTS: Final = 40.0
_BENDS_MAX: Final = 4_000
"""The points that long edges may have in all. If there were more, the longest edges are straight
lines."""
_WIDTH_OF_A_BEND: Final = 2.0
_PORTS_APART: Final = 14.0


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle; `x` and `y` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def middle_y(self) -> float:
        return self.y + self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def moved(self, x: float, y: float) -> Place:
        return replace(self, x=self.x + x, y=self.y + y)


@dataclass(frozen=True, slots=True)
class Route:
    """The points of an edge from its source to its destination: every second stretch of it, from
    the first on, is between two layers."""

    points: tuple[Point, ...]
    label: Place | None = None

    def moved(self, x: float, y: float) -> Route:
        return Route(
            tuple((px + x, py + y) for px, py in self.points),
            None if self.label is None else self.label.moved(x, y),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Places are in the order of the boxes, routes in that of the edges. An edge from a box to
    itself has no points."""

    width: float
    height: float
    places: tuple[Place, ...]
    routes: tuple[Route, ...]


def layout(
    sizes: Sequence[Size], edges: Sequence[Edge], labels: Sequence[Size | None] = ()
) -> Layout:
    """`sizes` are the widths and heights of the boxes, `edges` are pairs of their numbers, and
    `labels` the sizes of the edges' labels. The parts of the graph that are not connected are laid
    out one by one, and then put into rows."""
    given = list(labels) or [None] * len(edges)
    places: list[Place] = [Place(0, 0, 0, 0)] * len(sizes)
    routes: list[Route] = [Route(())] * len(edges)
    drawn = [
        (boxes, own, _connected(boxes, own, sizes, edges, given))
        for boxes, own in _parts(len(sizes), edges)
    ]
    corners, width, height = _in_rows([(one.width, one.height) for _, _, one in drawn])
    for (boxes, own, one), (x, y) in zip(drawn, corners):
        for box, place in zip(boxes, one.places):
            places[box] = place.moved(x, y)
        for edge, route in zip(own, one.routes):
            routes[edge] = route.moved(x, y)
    return Layout(width, height, tuple(places), tuple(routes))


def _parts(count: int, edges: Sequence[Edge]) -> list[tuple[list[int], list[int]]]:
    """The connected parts, each with the numbers of its boxes and of its edges."""
    root = list(range(count))

    def find(box: int) -> int:
        while root[box] != box:
            root[box] = root[root[box]]
            box = root[box]
        return box

    for source, destination in edges:
        a, b = sorted((find(source), find(destination)))
        root[b] = a
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for box in range(count):
        parts.setdefault(find(box), ([], []))[0].append(box)
    for n, (source, _) in enumerate(edges):
        parts[find(source)][1].append(n)
    return list(parts.values())


def _in_rows(sizes: Sequence[Size]) -> tuple[list[Point], float, float]:
    """The corners of rectangles that are put into rows, and the width and height of them all."""
    area = sum((w + GAP_BETWEEN_PARTS) * (h + GAP_BETWEEN_PARTS) for w, h in sizes)
    most = max([sqrt(1.8 * area), *(w for w, _ in sizes)], default=0.0)
    corners: list[Point] = []
    x = y = row = width = 0.0
    for w, h in sizes:
        if x and x + w > most:
            x, y, row = 0.0, y + row + GAP_BETWEEN_PARTS, 0.0
        corners.append((x, y))
        width, row = max(width, x + w), max(row, h)
        x += w + GAP_BETWEEN_PARTS
    return corners, width, y + row


def _connected(
    boxes: Sequence[int],
    own: Sequence[int],
    sizes: Sequence[Size],
    edges: Sequence[Edge],
    labels: Sequence[Size | None],
) -> Layout:
    number = {box: n for n, box in enumerate(boxes)}
    given = [(number[edges[n][0]], number[edges[n][1]]) for n in own]
    points = _Points([sizes[box] for box in boxes], given, [labels[n] for n in own])
    layers = ordered(points.layers, points.above, points.below)
    middles = points.placed(layers)
    return points.layout(layers, middles)


class _Points:
    """What is put into layers: the boxes, the labels, and the bends of the edges that pass a
    layer."""

    def __init__(
        self, sizes: Sequence[Size], given: Sequence[Edge], labels: Sequence[Size | None]
    ) -> None:
        self._given = given
        self._edges = without_cycles(len(sizes), given)
        self._boxes = len(sizes)
        self._sizes = list(sizes)
        self._labels = labels
        self._step = 1 if all(label is None for label in labels) else 2  # between, one for labels
        rank = ranks(len(sizes), self._edges, step=self._step)
        lowest = min(rank)
        self._rank = [each - lowest for each in rank]
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self._label_of: dict[int, int] = {}
        longest = self._longest_with_bends()
        self._chains = [self._chain(n, longest) for n in range(len(given))]
        self.layers: Layers = [[] for _ in range(max(self._rank) + 1)]
        for point, layer in enumerate(self._rank):
            self.layers[layer].append(point)

    def _longest_with_bends(self) -> int:
        spans = sorted(self._rank[b] - self._rank[a] for a, b in self._edges)
        total = 0
        for span in spans:
            total += span
            if total > _BENDS_MAX:
                return span - 1
        return spans[-1] if spans else 0

    def _chain(self, n: int, longest: int) -> list[int]:
        """The points of an edge, from top to bottom."""
        source, destination = self._edges[n]
        first, last = self._rank[source], self._rank[destination]
        if source == destination or last - first > longest:
            return [source, destination]
        label = self._labels[n]
        labelled = (first + last) // 2 if label is not None else None
        chain = [source]
        for layer in range(first + 1, last):
            point = len(self._sizes)
            if layer == labelled and label is not None:
                self._sizes.append(label)
                self._label_of[n] = point
            else:
                self._sizes.append((_WIDTH_OF_A_BEND, 0.0))
            self._rank.append(layer)
            self.above.append([])
            self.below.append([])
            chain.append(point)
        chain.append(destination)
        for upper, lower in pairwise(chain):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return chain

    def placed(self, layers: Layers) -> list[float]:
        count = len(self._sizes)
        return placed(
            layers,
            [width for width, _ in self._sizes],
            [[(other, self._straight(n, other)) for other in self.above[n]] for n in range(count)],
            [[(other, self._straight(n, other)) for other in self.below[n]] for n in range(count)],
            gap=GAP_BETWEEN_BOXES,
            sweeps=24 if count < 1500 else 8,
        )

    def _straight(self, a: int, b: int) -> float:
        return (1.0, 2.0, 8.0)[(a >= self._boxes) + (b >= self._boxes)]

    def layout(self, layers: Layers, middles: Sequence[float]) -> Layout:
        left = min(m - w / 2 for m, (w, _) in zip(middles, self._sizes))
        x = [middle - left for middle in middles]
        tops, heights = self._rows(layers, x)
        places = [
            Place(x[n] - width / 2, tops[r] + (heights[r] - height) / 2, width, height)
            for n, ((width, height), r) in enumerate(zip(self._sizes, self._rank))
        ]
        leaves, enters = self._ports(x)
        routes = []
        for n, chain in enumerate(self._chains):
            if self._given[n][0] == self._given[n][1]:
                routes.append(Route(()))
                continue
            points = [(leaves[n], places[chain[0]].bottom)]
            for point in chain[1:-1]:
                r = self._rank[point]
                points += [(x[point], tops[r]), (x[point], tops[r] + heights[r])]
            points.append((enters[n], places[chain[-1]].y))
            is_turned = self._edges[n] != self._given[n]
            label = places[self._label_of[n]] if n in self._label_of else None
            routes.append(Route(tuple(reversed(points) if is_turned else points), label))
        width = max(place.x + place.width for place in places)
        return Layout(width, tops[-1] + heights[-1], tuple(places[: self._boxes]), tuple(routes))

    def _rows(self, layers: Layers, x: Sequence[float]) -> tuple[list[float], list[float]]:
        """The top and the height of each layer. Between two layers there is more room if an edge
        goes far to the side."""
        heights = [max((self._sizes[n][1] for n in layer), default=0.0) for layer in layers]
        tops, y = [], 0.0
        for layer, height in zip(layers, heights):
            tops.append(y)
            aside = max(
                (abs(x[point] - x[other]) for point in layer for other in self.below[point]),
                default=0.0,
            )
            y += height + min(max(26.0 if self._step == 1 else 15.0, 0.12 * aside), 72.0)
        return tops, heights

    def _ports(self, x: Sequence[float]) -> tuple[list[float], list[float]]:
        """Where each edge leaves its upper box and enters its lower one: side by side, in the order
        of where they come from and go to."""
        leaves, enters = [0.0] * len(self._chains), [0.0] * len(self._chains)
        out: list[list[tuple[float, int]]] = [[] for _ in range(self._boxes)]
        into: list[list[tuple[float, int]]] = [[] for _ in range(self._boxes)]
        for n, chain in enumerate(self._chains):
            if chain[0] == chain[-1]:
                continue
            out[chain[0]].append((x[chain[1]], n))
            into[chain[-1]].append((x[chain[-2]], n))
        for box in range(self._boxes):
            for ends, ports in ((out[box], leaves), (into[box], enters)):
                for n, port in zip((n for _, n in sorted(ends)), self._spread(box, x, len(ends))):
                    ports[n] = port
        return leaves, enters

    def _spread(self, box: int, x: Sequence[float], count: int) -> Iterable[float]:
        apart = min(_PORTS_APART, (self._sizes[box][0] - 24) / max(1, count - 1))
        return (x[box] + (n - (count - 1) / 2) * apart for n in range(count))
