"""Rates of the vertices of one run, from its views of the last few seconds."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from pyrite.watching.views import RunView

WINDOW_SECONDS: Final = 5.0


class Rates:
    """Takes the views of one run in the order of time."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, tuple[int, int]]]] = deque()

    def added_to(self, view: RunView) -> RunView:
        """The view with the rates of its vertices. For a run that has ended, these are the means
        over its whole time."""
        counts = {each.name: (each.received, each.emitted) for each in view.vertices}
        if view.has_ended:
            since, before = view.submitted, dict.fromkeys(counts, (0, 0))
            now = view.submitted + view.seconds
        else:
            if not self._seen:
                self._seen.append((view.submitted, dict.fromkeys(counts, (0, 0))))
            while len(self._seen) > 1 and self._seen[1][0] <= view.seen - WINDOW_SECONDS:
                self._seen.popleft()
            since, before = self._seen[0]
            now = view.seen
            self._seen.append((view.seen, counts))
        seconds = now - since
        if seconds <= 0:
            return view
        return replace(
            view,
            vertices=tuple(
                replace(
                    each,
                    received_rate=max(0.0, (each.received - before[each.name][0]) / seconds),
                    emitted_rate=max(0.0, (each.emitted - before[each.name][1]) / seconds),
                )
                for each in view.vertices
            ),
        )
