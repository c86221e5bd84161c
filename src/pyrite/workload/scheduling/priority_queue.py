"""The priority queue of the jobs that no worker has: a min-priority queue with decrease-key.

The key of a job is the number of its direct upstream jobs that have not finished. Only jobs with
key 0 can be taken. Among these, the job with the lowest rank comes first, and among equal ranks the
job whose key reached 0 first.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any


class PriorityQueue:
    """Jobs are integers. A key decreases by one at a time, so the jobs with a key above 0 need no
    order: only the jobs with key 0 are in a heap. Until a key reaches 0, decrease-key is O(1).

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
        # The arrival numbers of the jobs with key 0. Other entries of the heap are stale.
        self._live: dict[int, int] = {}

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
            raise ValueError(f"job {job} is already in the queue")
        if key < 0:
            raise ValueError(
                f"the key of job {job} is {key}; it counts upstream jobs, so it must be 0 or more"
            )
        self._keys[job] = key
        if key == 0:
            self._arrive(job, rank)

    def decrease(self, job: int, *, rank: Any = 0) -> bool:
        """Decreases the key of a job by 1, and returns whether it is 0 now. If so, the job is ready
        with this rank."""
        key = self._keys[job] - 1
        if key < 0:
            raise ValueError(
                f"the key of job {job} is already 0: one of its upstream jobs was counted twice"
            )
        self._keys[job] = key
        if key:
            return False
        self._arrive(job, rank)
        return True

    def take(self) -> int | None:
        """Removes and returns the first job with key 0; None if there is none."""
        while self._ready:
            _, arrival, job = heappop(self._ready)
            if self._live.get(job) == arrival:
                del self._live[job], self._keys[job]
                return job
        return None

    def first(self) -> tuple[Any, int] | None:
        """The rank and the number of the job that `take` would return; None if there is none."""
        while self._ready:
            rank, arrival, job = self._ready[0]
            if self._live.get(job) == arrival:
                return rank, job
            heappop(self._ready)
        return None

    def remove(self, job: int) -> None:
        """Removes a job with any key."""
        del self._keys[job]
        self._live.pop(job, None)

    def _arrive(self, job: int, rank: Any) -> None:
        self._arrivals += 1
        self._live[job] = self._arrivals
        heappush(self._ready, (rank, self._arrivals, job))
