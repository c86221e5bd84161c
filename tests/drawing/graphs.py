"""Graphs for the tests of drawings."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as some

from pyrite.drawing import Arrow, Box

Edge = tuple[int, int]


@some.composite
def dags(draw: some.DrawFn, most: int = 24) -> tuple[int, list[Edge]]:
    """The number of vertices and the edges of a graph without cycles."""
    count = draw(some.integers(1, most))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(some.lists(some.sampled_from(pairs), max_size=3 * count)) if pairs else []
    order = draw(some.permutations(range(count)))
    return count, [(order[a], order[b]) for a, b in edges]


def random_dag(count: int, edges: int, seed: int = 1) -> list[Edge]:
    chosen = random.Random(seed)
    pairs = (sorted(chosen.sample(range(count), 2)) for _ in range(edges))
    return [(a, b) for a, b in pairs]


def boxes_and_arrows(
    names: Sequence[str], edges: Sequence[Edge], label: str = ""
) -> tuple[list[Box], list[Arrow]]:
    return [Box(name) for name in names], [Arrow(names[a], names[b], label) for a, b in edges]
