"""The priority queue of the jobs that are not with a worker: a min-priority queue with
decrease-key.

A job's key is the number of its direct upstream jobs that have not finished. Only a job with key 0
can be taken; among those, the one with the lowest rank goes first, and of equal ranks the one whose
key fell to 0 first.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any


class PriorityQueue:
    """Jobs are whole numbers. A key falls by one at a time, so the jobs with a key above 0 need no
    order among themselves: only those at 0 are in a heap, and decrease-key is O(1) until it reaches
    0.

    >>> queue = PriorityQueue()
    >>> for job, upstream in enumerate([0, 1, 1, 2]):
    ...     queue.push(job, key=upstream)
    >>> queue.take(), queue.take()
    (0, None)
    >>> queue.decrease(1), queue.decrease(2)
    (True, True)
    >>> queue.keys
    {1: 0, 2: 0, 3: 2}
    """

    def __init__(self) -> None:
        self._keys: dict[int, int] = {}
        self._ready: list[tuple[Any, int, int]] = []
        self._arrivals = 0
        self._live: dict[
            int, int
            # of a job at key 0: its arrival, so that an entry of the heap that was removed is known
        ] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, job: int) -> bool:
        return job in self._keys

    @property
    def keys(self) -> Mapping[int, int]:
        return self._keys

    @property
    def ready_count(self) -> int:
        return len(self._live)

    def push(self, job: int, *, key: int, rank: Any = 0) -> None:
        """Adds a job. Ranks must be comparable with each other."""
        if job in self._keys:
            raise ValueError(f"job {job} is in the queue already")
        if key < 0:
            raise ValueError(
                f"the key of job {job} is {key}; it counts upstream jobs, so it cannot be below 0"
            )
        self._keys[job] = key
        if key == 0:
            self._arrive(job, rank)

    def decrease(self, job: int, *, rank: Any = 0) -> bool:
        """Takes 1 off a job's key. Whether it is 0 now; then `rank` is its place among those at
        0."""
        key = self._keys[job] - 1
        if key < 0:
            raise ValueError(
                f"the key of job {job} is 0 already: one of its upstream jobs was counted twice"
            )
        self._keys[job] = key
        if key:
            return False
        self._arrive(job, rank)
        return True

    def take(self) -> int | None:
        """Removes the first of the jobs at key 0, and returns it; None if there is none."""
        while self._ready:
            _, arrival, job = heappop(self._ready)
            if self._live.get(job) == arrival:
                del self._live[job], self._keys[job]
                return job
        return None

    def remove(self, job: int) -> None:
        """Takes a job out, whatever its key."""
        del self._keys[job]
        self._live.pop(job, None)

    def _arrive(self, job: int, rank: Any) -> None:
        self._arrivals += 1
        self._live[job] = self._arrivals
        heappush(self._ready, (rank, self._arrivals, job))
