"""When the stages of a run began and ended, from looks at its progress. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class StageTime:
    label: str
    began: float
    done: int = 0
    total: int = 0
    ended: float | None = None


class StageTimes:
    """Takes the progress of one run, in the order of time.

    >>> times = StageTimes()
    >>> times.saw([("read", 1, 2)], now=10.0)
    >>> times.saw([("read", 2, 2), ("count", 0, 4)], now=11.0)
    >>> [(stage.label, stage.began, stage.ended) for stage in times.seen]
    [('read', 10.0, 11.0), ('count', 11.0, None)]
    """

    def __init__(self) -> None:
        self._stages: dict[tuple[str, int], StageTime] = {}

    @property
    def seen(self) -> Sequence[StageTime]:
        return tuple(self._stages.values())

    def saw(self, progress: Sequence[tuple[str, int, int]], now: float) -> None:
        times_of_label: dict[str, int] = {}
        for label, done, total in progress:
            number = times_of_label[label] = times_of_label.get(label, 0) + 1
            stage = self._stages.setdefault((label, number), StageTime(label, now))
            stage.done, stage.total = done, total
            if stage.ended is None and total and done >= total:
                stage.ended = now
