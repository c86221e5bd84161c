"""Resources that running jobs share: places in pools, cores, memory. A job takes an amount of each
resource that it needs, and gives it back when it ends.

A job that does not fit waits. No job waits for ever: what the first of the waiting jobs needs is
reserved for it, so that the jobs behind it take only what is left over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

Needs = Mapping[str, int]
"""Amounts by the names of the resources. They are integers, so that sums are exact."""


class Resources:
    """Jobs are integers. They wait in the order of their ranks, and those of the same rank in the
    order of their arrival. A job that was taken back from a worker keeps its place.

    Waiting jobs with the same needs form a line, because only the first of them can be the next to
    fit. So a check takes a time that grows with the number of different needs, not of jobs.

    >>> resources = Resources({"memory": 8})
    >>> [resources.take_or_wait(job, {"memory": needed}, rank=0)
    ...     for job, needed in ((0, 6), (1, 4), (2, 1))]
    [True, False, False]
    >>> resources.give_back({"memory": 6})
    >>> resources.next(), resources.next(), resources.next()
    (1, 2, None)
    """

    def __init__(self, capacities: Needs) -> None:
        self.free = dict(capacities)
        self._lines: dict[tuple[tuple[str, int], ...], list[tuple[Any, int, int]]] = {}
        self._places: dict[int, int] = {}
        self._arrivals = 0
        self._none_fits = True  # no waiting job fits, as far as is known

    def take_or_wait(self, job: int, needs: Needs, *, rank: Any) -> bool:
        """Takes what the job needs and returns True. If it is not there, or is reserved for a job
        that comes before, the job waits."""
        if job not in self._places:
            self._arrivals += 1
            self._places[job] = self._arrivals
        entry = (rank, self._places[job], job)
        first = min((line[0] for line in self._lines.values()), default=None)
        is_behind = first is not None and first < entry
        if self._fits(needs, self._needs_of_first() if is_behind else {}):
            self._take(needs)
            return True
        line = self._lines.setdefault(tuple(sorted(needs.items())), [])
        heappush(line, entry)
        if not is_behind:  # what was reserved for the job that was the first is free now
            self._none_fits = False
        return False

    def give_back(self, needs: Needs) -> None:
        for name, amount in needs.items():
            self.free[name] += amount
        self._none_fits = not self._lines

    def lose_place(self, job: int) -> None:
        """When the job comes again, it is as if it came for the first time."""
        self._places.pop(job, None)

    def has_next_before(self, ready: tuple[Any, int] | None) -> bool:
        """Whether a waiting job fits that comes before this one, given by its rank and number."""
        found = self._next_line()
        if found is None or ready is None:
            return found is not None
        rank, job = ready
        return found[1][0][:2] < (rank, self._places.get(job, self._arrivals + 1))

    @property
    def may_have_next(self) -> bool:
        return not self._none_fits

    def next(self) -> int | None:
        """Takes what the first waiting job that fits needs, and returns the job."""
        found = self._next_line()
        if found is None:
            return None
        needs, line = found
        self._take(dict(needs))
        job = heappop(line)[2]
        if not line:
            del self._lines[needs]
        return job

    def waiting(self) -> Iterator[int]:
        return (job for line in self._lines.values() for _, _, job in line)

    def forget_waiting(self) -> None:
        self._lines.clear()
        self._none_fits = True

    def _next_line(self) -> tuple[tuple[tuple[str, int], ...], list[tuple[Any, int, int]]] | None:
        if self._none_fits:
            return None
        reserved: Needs = {}
        for needs, line in sorted(self._lines.items(), key=lambda item: item[1][0]):
            if self._fits(dict(needs), reserved):
                return needs, line
            if not reserved:
                reserved = dict(needs)
        self._none_fits = True
        return None

    def _needs_of_first(self) -> Needs:
        return dict(min(self._lines.items(), key=lambda item: item[1][0])[0])

    def _fits(self, needs: Needs, reserved: Needs) -> bool:
        free = self.free
        return all(
            amount <= free[name] - (reserved.get(name, 0) if reserved else 0)
            for name, amount in needs.items()
        )

    def _take(self, needs: Needs) -> None:
        for name, amount in needs.items():
            self.free[name] -= amount
