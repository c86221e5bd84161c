"""A small night's work: jobs that wait for each other, one that fails the first time, and a second
run that finds all up to date."""

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
            raise ConnectionError("the shop does not answer")
        return [("plum", 5), ("pear", 1), ("plum", 1)]

    @workload.job
    def revenue(prices: dict[str, int], orders: list[tuple[str, int]]) -> int:
        return sum(prices[fruit] * count for fruit, count in orders)

    return workload


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        run = nightly(Path(place)).run(workers=2, store=Path(place, "night")).wait()
        print("revenue", run.results["revenue"])
        print("tries", {row["job"]: row["attempt"] for row in run.table()})
        again = nightly(Path(place)).run(workers=2, store=Path(place, "night")).wait()
        print("again", {row["job"]: str(row["state"]) for row in again.table()})
