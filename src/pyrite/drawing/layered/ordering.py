"""The order of the points within each layer, such that few edges cross. An edge is between points
of neighbouring layers here: longer ones are cut into such pieces before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Final

Layers = list[list[int]]
Neighbours = Sequence[Sequence[int]]

_SWEEPS: Final = 24
_SWEEPS_WITHOUT_GAIN: Final = 6
_POINTS_MAX: Final = 60_000
"""The points that all sweeps move, so that a large graph is drawn soon."""
_WORK: Final = 80_000
"""The neighbours that exchanges may look at, for the same reason."""


def ordered(layers: Layers, above: Neighbours, below: Neighbours) -> Layers:
    """The layers in a better order: at most as many edges cross as in the one given. Each sweep
    moves the points to the means of their neighbours, down and then up, and exchanges points next
    to each other where that helps."""
    best, fewest = layers, crossings(layers, below)
    sweeps = min(_SWEEPS, max(4, _POINTS_MAX // max(1, len(below))))
    for start in (layers, _by_descent(layers, below)):
        now, idle, work = [list(layer) for layer in start], 0, _WORK
        for sweep in range(sweeps):
            if fewest == 0 or idle == _SWEEPS_WITHOUT_GAIN:
                break
            place = _places(now)
            if sweep % 2 == 0:
                for n in range(1, len(now)):
                    _by_means(now[n], above, place)
            else:
                for n in reversed(range(len(now) - 1)):
                    _by_means(now[n], below, place)
            work = _exchange(now, above, below, work)
            count = crossings(now, below)
            idle += 1
            if count < fewest:
                best, fewest, idle = [list(layer) for layer in now], count, 0
    return best


def crossings(layers: Layers, below: Neighbours) -> int:
    """How many pairs of edges cross."""
    place = _places(layers)
    total = 0
    for layer in layers:
        seen: list[int] = []
        for point in layer:
            ends = sorted(place[other] for other in below[point])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _by_descent(layers: Layers, below: Neighbours) -> Layers:
    """The order in which a walk from the top reaches the points, which keeps branches together."""
    layer_of = {point: n for n, layer in enumerate(layers) for point in layer}
    found: Layers = [[] for _ in layers]
    seen: set[int] = set()
    for top in (point for layer in layers for point in layer):
        waiting = [top]
        while waiting:
            point = waiting.pop()
            if point not in seen:
                seen.add(point)
                found[layer_of[point]].append(point)
                waiting.extend(reversed(below[point]))
    return found


def _by_means(layer: list[int], neighbours: Neighbours, place: list[int]) -> None:
    """Sorts the points of a layer by the means of their neighbours' places. Those without any stay
    where they are."""
    mean = {
        point: sum(place[other] for other in neighbours[point]) / len(neighbours[point])
        for point in layer
        if neighbours[point]
    }
    moved = iter(sorted(mean, key=lambda point: (mean[point], place[point])))
    layer[:] = [next(moved) if point in mean else point for point in layer]
    for n, point in enumerate(layer):
        place[point] = n


def _exchange(layers: Layers, above: Neighbours, below: Neighbours, work: int) -> int:
    """Exchanges points next to each other as long as that leaves fewer crossings. Returns the work
    that is left."""
    place = _places(layers)
    improved = True
    while improved and work > 0:
        improved = False
        for layer in layers:
            for n in range(len(layer) - 1):
                if work <= 0:
                    return 0
                first, second = layer[n], layer[n + 1]
                gain = 0
                for neighbours in (above, below):
                    left = sorted([place[other] for other in neighbours[first]])
                    right = sorted([place[other] for other in neighbours[second]])
                    work -= len(left) + len(right) + 1
                    if left and right:
                        gain += _crossed(left, right) - _crossed(right, left)
                if gain > 0:
                    layer[n], layer[n + 1] = second, first
                    place[first], place[second] = n + 1, n
                    improved = True
    return work


def _crossed(left: Sequence[int], right: Sequence[int]) -> int:
    """The crossings of the edges of two points next to each other."""
    return sum(bisect_left(right, end) for end in left)


def _places(layers: Layers) -> list[int]:
    place = [0] * sum(map(len, layers))
    for layer in layers:
        for n, point in enumerate(layer):
            place[point] = n
    return place
