"""`python -m benchmarks [name ...]`: runs all comparisons, or those named. A missed aim is printed,
and is no failure."""

from __future__ import annotations

import os
import platform
import sys

from rich.console import Console

from benchmarks import chain, light_jobs, members, memory, on_spark, workloads

# In this order whatever is asked for: see light_jobs.
COMPARISONS = {
    "light_jobs": light_jobs.run,
    "members": members.run,
    "chain": chain.run,
    "on_spark": on_spark.run,
    "memory": memory.run,
    "workloads": workloads.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        print(
            f"there is no comparison {', '.join(map(repr, unknown))}; there are "
            f"{', '.join(COMPARISONS)}",
            file=sys.stderr,
        )
        return 2
    # Where nobody watches, as in a log, a terminal's width is a guess that would fold the tables.
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
