"""A small workload: jobs that depend on each other, a job that fails at its first attempt, and a
second run in which all jobs are up to date."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyrite.workload import Workload


def nightly(folder: Path) -> Workload:
    workload = Workload()

    @workload.job
    def prices() -> dict[str, int]:
        return {"plum": 2, "pear": 3}

    @workload.job(retries=1)
    def orders() -> list[tuple[str, int]]:
        marker = folder / "tried"
        if not marker.exists():
            marker.touch()
            raise ConnectionError("the server does not answer")
        return [("plum", 5), ("pear", 1), ("plum", 1)]

    @workload.job
    def revenue(prices: dict[str, int], orders: list[tuple[str, int]]) -> int:
        return sum(prices[fruit] * count for fruit, count in orders)

    return workload


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        run = nightly(Path(place)).run(workers=2, store=Path(place, "night")).wait()
        print("revenue", run.results["revenue"])
        print("attempts", {row["job"]: row["attempt"] for row in run.table()})
        again = nightly(Path(place)).run(workers=2, store=Path(place, "night")).wait()
        print("second run", {row["job"]: str(row["state"]) for row in again.table()})
