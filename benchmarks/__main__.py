"""`python -m benchmarks [name ...]` runs all comparisons, or those that are named. A missed aim is
printed, but it is not an error."""

from __future__ import annotations

import os
import platform
import sys

from rich.console import Console

from benchmarks import (
    async_calls,
    chain,
    durable,
    durable_jobs,
    light_jobs,
    members,
    memory,
    on_spark,
    pipelines,
    scale,
    seeing,
    seeing_durable,
    spots,
    workloads,
)
from benchmarks.columns import comparison as columns

# They always run in this order, because light_jobs must come first (see there).
COMPARISONS = {
    "light_jobs": light_jobs.run,
    "members": members.run,
    "chain": chain.run,
    "spots": spots.run,
    "async": async_calls.run,
    "on_spark": on_spark.run,
    "pipelines": pipelines.run,
    "scale": scale.run,
    "columns": columns.run,
    "seeing": seeing.run,
    "seeing_durable": seeing_durable.run,
    "memory": memory.run,
    "workloads": workloads.run,
    "durable": durable.run,
    "durable_jobs": durable_jobs.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        print(
            f"there is no comparison {', '.join(map(repr, unknown))}; the comparisons are "
            f"{', '.join(COMPARISONS)}",
            file=sys.stderr,
        )
        return 2
    # If the output is not a terminal, Rich assumes 80 columns, which would wrap the tables.
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} CPUs, "
        f"{platform.machine()}"
    )
    for name, run in COMPARISONS.items():
        if not names or name in names:
            run(console)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
