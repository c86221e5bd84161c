"""The limit that Spark sets for the memory of a Python worker (spark.executor.pyspark.memory).

It limits the address space, of which the libraries of a worker take a large part from the start.
"""

from __future__ import annotations

import os
import resource


def memory_limit() -> int | None:
    """The limit in bytes; None if there is none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def free_address_space() -> int | None:
    """How many bytes are left; None if there is no limit."""
    limit = memory_limit()
    if limit is None:
        return None
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return max(0, limit - taken)
