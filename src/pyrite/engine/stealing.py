"""Work stealing: decides which worker gives a tasklet away, from the tasklet counts alone."""

from __future__ import annotations

from collections.abc import Sequence


def worker_to_rob(tasklet_counts: Sequence[int], thief: int) -> int | None:
    """The index of the worker with the most tasklets if it has at least two more than the thief;
    otherwise None.

    >>> worker_to_rob([1, 4, 3], thief=0), worker_to_rob([1, 2], thief=0)
    (1, None)
    """
    richest = max(range(len(tasklet_counts)), key=tasklet_counts.__getitem__)
    return richest if tasklet_counts[richest] - tasklet_counts[thief] >= 2 else None
