"""Which of the keys that an edge tells are worth a look: those that make a few processors do most
of the work. The page has the same rule, in heavy_keys.js."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pyrite.watching.views import HeavyKey, VertexView

FEWEST_ITEMS: Final = 200
"""Of fewer items, shares are an accident."""
WELL_ABOVE: Final = 2.0
"""Times the mean of the other keys."""
MOST_TOLD: Final = 5
"""An edge with more keys tells only these."""
LARGEST_UNTOLD: Final = 0.01
"""Where fewer keys are told, the others have so few items that each has at most this share."""


def notable_keys(vertex: VertexView) -> tuple[HeavyKey, ...]:
    """The keys of the edges whose heaviest key has far more items than the mean of the others."""
    edges = groupby(vertex.heaviest_keys, key=lambda each: each.edge)
    return tuple(
        key
        for keys in (tuple(found) for _, found in edges)
        if _is_notable(keys, vertex.processor_count)
        for key in keys
    )


def _is_notable(keys: Sequence[HeavyKey], processor_count: int) -> bool:
    shares = [key.share for key in keys]
    heaviest = max(keys, key=lambda key: key.share)
    if heaviest.share <= 0 or heaviest.count < FEWEST_ITEMS * heaviest.share:
        return False
    if len(keys) == 1 and heaviest.share > 1 - LARGEST_UNTOLD:
        return processor_count > 1  # all items go to one of the processors
    untold = min(shares) if len(keys) >= MOST_TOLD else LARGEST_UNTOLD
    others = len(keys) - 1 + max(0.0, 1 - sum(shares)) / max(untold, 1e-9)
    return heaviest.share * others > WELL_ABOVE * (1 - heaviest.share)
