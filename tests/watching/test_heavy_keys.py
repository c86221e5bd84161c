"""Keys are shown where they tell something."""

from __future__ import annotations

import pytest

from pyrite.watching.heavy_keys import notable_keys
from pyrite.watching.vertex_table import columns_of
from pyrite.watching.views import HeavyKey, VertexView

CASES: dict[str, tuple[list[float], int, int, bool]] = {
    "seven items, each with a key of its own": ([1 / 7] * 5, 7, 4, False),
    "most of 50 items": ([0.9, 0.1], 50, 4, False),
    "most of 300 items": ([0.9, 0.1], 300, 4, True),
    "seven keys, all the same": ([1 / 7] * 5, 70_000, 4, False),
    "three keys of which one is somewhat heavier": ([0.5, 0.25, 0.25], 2000, 4, False),
    "words of a language": ([0.071, 0.038, 0.035, 0.031, 0.028], 100_000, 8, True),
    "a hundred keys, nearly the same": ([0.018, 0.017, 0.016, 0.015, 0.015], 900, 4, False),
    "one heavy key among many": ([0.3], 500_000, 4, True),
    "two heavy keys among many": ([0.3, 0.28], 500_000, 4, True),
    "one key in all items": ([1.0], 5000, 4, True),
    "one key in all items, and one processor": ([1.0], 5000, 1, False),
}


def vertex_of(shares: list[float], items: int, processors: int) -> VertexView:
    keys = tuple(
        HeavyKey(edge="'a -> b'", key=str(n), count=round(items * share), share=share)
        for n, share in enumerate(shares)
    )
    return VertexView(name="b", heaviest_keys=keys, processor_count=processors)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_heavy_key_is_shown_where_it_tells_something(
    case: tuple[list[float], int, int, bool],
) -> None:
    shares, items, processors, is_notable = case
    vertex = vertex_of(shares, items, processors)
    assert notable_keys(vertex) == (vertex.heaviest_keys if is_notable else ())


def test_only_the_edges_with_a_heavy_key_count() -> None:
    even = HeavyKey(edge="'a -> c'", key="even", count=1000, share=0.5)
    heavy = HeavyKey(edge="'b -> c'", key="'x'", count=300, share=0.3)
    vertex = VertexView(name="c", heaviest_keys=(even, even, heavy))
    assert notable_keys(vertex) == (heavy,)
    assert columns_of([vertex])[-1].cells == ("'x': 30%",)
