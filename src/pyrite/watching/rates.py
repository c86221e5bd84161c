"""Rates of the vertices and stages of one run, from its views of the last few seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pyrite.watching.views import RunView

WINDOW_SECONDS: Final = 5.0


class Rates:
    """Takes the views of one run in the order of time."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()

    def added_to(self, view: RunView) -> RunView:
        """The view with the rates of its vertices and stages. For a run that has ended, these are
        the means over its whole time."""
        if view.has_ended:
            before = _Seen(at=view.submitted)
            now = view.submitted + view.seconds
        else:
            if not self._seen:
                self._seen.append(_Seen(at=view.submitted))
            while len(self._seen) > 1 and self._seen[1].at <= view.seen - WINDOW_SECONDS:
                self._seen.popleft()
            before = self._seen[0]
            now = view.seen
            self._seen.append(_seen(view))
        seconds = now - before.at
        if seconds <= 0:
            return view

        def rate(name: tuple[str, str], count: int) -> float:
            return max(0.0, (count - before.counts.get(name, 0)) / seconds)

        return replace(
            view,
            vertices=tuple(
                replace(
                    each,
                    received_rate=rate((RECEIVED, each.name), each.received),
                    emitted_rate=rate((EMITTED, each.name), each.emitted),
                )
                for each in view.vertices
            ),
            stages=tuple(
                replace(each, rate=rate((DONE, each.label), each.done)) for each in view.stages
            ),
        )


RECEIVED, EMITTED, DONE = "received", "emitted", "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The counts of one moment; what is not there was 0."""

    at: float
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)


def _seen(view: RunView) -> _Seen:
    counts = {(RECEIVED, each.name): each.received for each in view.vertices}
    counts |= {(EMITTED, each.name): each.emitted for each in view.vertices}
    counts |= {(DONE, each.label): each.done for each in view.stages}
    return _Seen(at=view.seen, counts=counts)
