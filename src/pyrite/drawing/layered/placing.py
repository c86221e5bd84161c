"""Where the points of ordered layers stand from left to right: close to their neighbours above and
below, and never on each other."""

from __future__ import annotations

from collections.abc import Sequence

Weighted = Sequence[Sequence[tuple[int, float]]]
"""For each point, its neighbours, and how much the edge to each of them should be straight."""


def placed(
    layers: Sequence[Sequence[int]],
    widths: Sequence[float],
    above: Weighted,
    below: Weighted,
    *,
    gap: float,
    sweeps: int,
) -> list[float]:
    """The middle of each point. Between the points of a layer there is at least `gap`."""
    middle = [0.0] * len(widths)
    offsets = []
    for layer in layers:
        at, starts = 0.0, []
        for point in layer:
            starts.append(at + widths[point] / 2)
            middle[point] = at + widths[point] / 2
            at += widths[point] + gap
        offsets.append(starts)
        for point in layer:
            middle[point] -= at / 2
    best, least = middle, _slant(middle, below)
    for sweep in range(sweeps):
        goes_down = sweep % 2 == 0
        neighbours = above if goes_down else below
        for n in range(len(layers)) if goes_down else reversed(range(len(layers))):
            _settle(layers[n], offsets[n], neighbours, middle)
        slant = _slant(middle, below)
        if slant < least:
            best, least = list(middle), slant
    return best


def _slant(middle: Sequence[float], below: Weighted) -> float:
    """How far the edges go to the side, by their weights."""
    return sum(
        weight * abs(middle[point] - middle[other])
        for point, others in enumerate(below)
        for other, weight in others
    )


def _settle(
    layer: Sequence[int], offsets: Sequence[float], neighbours: Weighted, middle: list[float]
) -> None:
    wanted, weights = [], []
    for point, offset in zip(layer, offsets):
        own = neighbours[point]
        wanted.append((_median(own, middle) if own else middle[point]) - offset)
        weights.append(sum(weight for _, weight in own) or 0.1)
    for point, offset, value in zip(layer, offsets, rising(wanted, weights)):
        middle[point] = value + offset


def _median(neighbours: Sequence[tuple[int, float]], middle: Sequence[float]) -> float:
    """The weighted median of where the neighbours are: unlike the mean, it lets one edge be
    straight."""
    if len(neighbours) == 1:
        return middle[neighbours[0][0]]
    ordered = sorted((middle[other], weight) for other, weight in neighbours)
    half = sum(weight for _, weight in ordered) / 2
    for n, (place, weight) in enumerate(ordered):
        half -= weight
        if half == 0:
            return (place + ordered[n + 1][0]) / 2
        if half < 0:
            break
    return place


def rising(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The numbers that never fall and are closest to the values, by the weighted squares of the
    differences: neighbours in the wrong order become their mean.

    >>> rising([1, 5, 3, 9], [1, 1, 1, 1])
    [1.0, 4.0, 4.0, 9.0]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(values, weights):
        mean, total, count = float(value), float(weight), 1
        while blocks and blocks[-1][0] > mean:
            before, its_weight, its_count = blocks.pop()
            mean = (mean * total + before * its_weight) / (total + its_weight)
            total, count = total + its_weight, count + its_count
        blocks.append((mean, total, count))
    return [mean for mean, _, count in blocks for _ in range(count)]
