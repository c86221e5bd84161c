"""The word count on Dask bag, with two processes. Only the child process of `peers` imports
this."""

from __future__ import annotations

import dask.bag  # type: ignore[import-not-found,import-untyped,unused-ignore]


def words(_: int, pattern: str) -> int:
    """Counts the words of files. Returns how many distinct ones there are."""
    lines = dask.bag.read_text(pattern)
    counts = lines.map(str.split).flatten().frequencies()
    return len(counts.compute(scheduler="processes", num_workers=2))
