"""The rates of the vertices of one run over time, for small charts: the last POINTS of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Final

from pyrite.watching.views import RunView

POINTS: Final = 120
ALL: Final = -math.inf
"""All points are later."""

HistoryDocument = dict[str, dict[str, list[float]]]
"""By vertex: the times `t`, and at each of them `received_rate` and `emitted_rate`."""


class History:
    """Takes the views of one run in the order of time, with their rates."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, dict[str, tuple[float, float]]]] = deque(maxlen=POINTS)

    @property
    def last(self) -> float:
        """The time of the last point."""
        return self._points[-1][0] if self._points else ALL

    def add(self, view: RunView) -> None:
        rates = {each.name: (each.received_rate, each.emitted_rate) for each in view.vertices}
        self._points.append((view.seen, rates))

    def to_json(self, after: float = ALL) -> HistoryDocument:
        """The points with times later than `after`."""
        points = [point for point in list(self._points) if round(point[0], 1) > after]
        names: Iterable[str] = points[-1][1] if points else ()
        times = [round(t, 1) for t, _ in points]
        return {
            name: {
                "t": times,
                "received_rate": [round(rates.get(name, _NONE)[0], 1) for _, rates in points],
                "emitted_rate": [round(rates.get(name, _NONE)[1], 1) for _, rates in points],
            }
            for name in names
        }


def later(history: HistoryDocument, after: float) -> HistoryDocument:
    """The points of a document with times later than `after`."""
    found: HistoryDocument = {}
    for name, lists in history.items():
        first = bisect_right(lists["t"], after)
        if first < len(lists["t"]):
            found[name] = {key: values[first:] for key, values in lists.items()}
    return found


def newest(history: HistoryDocument) -> float:
    """The time of the last point."""
    return max((lists["t"][-1] for lists in history.values() if lists["t"]), default=ALL)


_NONE: Final = (0.0, 0.0)
