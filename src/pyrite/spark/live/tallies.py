"""What a driver has been told by the tasks of one run. Pure.

A task may run several times: an attempt fails, or Spark starts a second one to be faster. All
attempts do the same work. So a task has done what its furthest attempt has done: counters neither
fall nor count anything twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyrite.engine.metrics import added_up, at_rest, highest, not_begun

LOST_SECONDS: Final = 5.0
"""An attempt that is not heard of for so long, and two of its intervals, counts as gone."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one attempt of a task has told."""

    section: int
    member: int
    attempt: str
    is_over: bool
    process: Mapping[str, Any]
    metrics: Mapping[str, Any]

    @staticmethod
    def of(message: bytes) -> Told:
        return Told(**json.loads(message))


@dataclass(slots=True)
class _Task:
    metrics: dict[str, Any]
    attempts: dict[str, tuple[float, Mapping[str, Any]]]
    """The attempts that run: when each was last heard of, and its process."""


class Tallies:
    """`interval` is how many seconds there are between two messages of a task, and `members` how
    many tasks each section has."""

    def __init__(self, interval: float, members: int = 1) -> None:
        self._members = members
        self._patience = LOST_SECONDS + 2 * interval
        self._tasks: dict[tuple[int, int], _Task] = {}

    def take(self, told: Told, now: float) -> None:
        key = (told.section, told.member)
        task = self._tasks.setdefault(key, _Task({}, {}))
        task.metrics = highest(task.metrics, told.metrics)
        if told.is_over:
            task.attempts.pop(told.attempt, None)
        else:
            task.attempts[told.attempt] = (now, told.process)

    def metrics(self, order: Sequence[str], now: float) -> dict[str, Any]:
        """The metrics of all vertices that have begun, in this order. Of these, they have the
        processors of all tasks, also of those that wait for a free core."""
        told = [
            task.metrics if self._processes(task, now) else at_rest(task.metrics)
            for task in self._tasks.values()
        ]
        sections = Counter(section for section, _ in self._tasks)
        of_section = {section: task.metrics for (section, _), task in self._tasks.items()}
        for section, count in sections.items():
            told += [not_begun(of_section[section])] * (self._members - count)
        return added_up(told, order)

    def of_task(self, section: int, member: int) -> Mapping[str, Any]:
        """The metrics of one task; nothing if it has told nothing."""
        task = self._tasks.get((section, member))
        return {} if task is None else task.metrics

    def members(self, now: float) -> list[dict[str, Any]]:
        """The processes that run tasks now."""
        found = {
            (process["host"], process["pid"]): dict(process)
            for task in self._tasks.values()
            for process in self._processes(task, now)
        }
        return sorted(found.values(), key=lambda process: int(process["member"]))

    def _processes(self, task: _Task, now: float) -> list[Mapping[str, Any]]:
        return [
            process for heard, process in task.attempts.values() if heard + self._patience >= now
        ]
