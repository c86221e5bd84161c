"""A workload whose jobs read and write files: one job per month cleans a file, a pipeline adds up
all of them, a function writes a report, and a program packs it. The second run has nothing to do.
Then the file of one month changes: `plan` says what would run, and only that runs."""

from __future__ import annotations

import csv
import gzip
import random
import tempfile
from pathlib import Path
from typing import Any

from pyrite import Pipeline, agg
from pyrite import processors as p
from pyrite.workload import Run, Workload

MONTHS = ["2026-01", "2026-02", "2026-03"]


def clean(raw: Path, cleaned: Path) -> Path:
    """Copies the rows that have a price. A Path among the arguments counts by what is in the
    file, and the Path that is returned is an output of the job."""
    with raw.open() as source, cleaned.open("w") as target:
        for row in source:
            if not row.rstrip().endswith(","):
                target.write(row)
    return cleaned


def totals(folder: Path) -> Pipeline:
    pipe = Pipeline()
    types = {"shop": str, "cents": int}
    rows = pipe.read_from(p.read_files(f"{folder}/clean/*.csv", format="csv", schema=types))
    by_shop = rows.group_by(lambda row: row["shop"])
    by_shop.aggregate(agg.sum(lambda row: int(row["cents"]))).write_to(p.write_map("totals"))
    return pipe


def report(totals: dict[str, dict[str, int]], path: Path) -> None:
    lines = [f"{shop}: {cents / 100:.2f}" for shop, cents in sorted(totals["totals"].items())]
    path.write_text("\n".join(lines) + "\n")


def monthly(folder: Path) -> Workload:
    (folder / "clean").mkdir(exist_ok=True)
    workload = Workload()
    files = []
    for month in MONTHS:
        cleaned = folder / "clean" / f"{month}.csv"
        workload.add(f"clean {month}", clean, args=[folder / "raw" / f"{month}.csv", cleaned])
        files.append(str(cleaned))
    cleaning = [f"clean {month}" for month in MONTHS]
    workload.add("totals", totals(folder), light=True, after=cleaning, files_in=files)
    text = folder / "report.txt"
    workload.add("report", report, kwargs={"path": text}, after="totals", files_out=[str(text)])
    workload.add("pack", ["gzip", "-kf", str(text)], after="report", files_out=[f"{text}.gz"])
    return workload


def write_month(path: Path, *, seed: int, rows: int = 500) -> None:
    chance = random.Random(seed)
    with path.open("w") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["shop", "cents"])
        for _ in range(rows):
            price: Any = "" if chance.random() < 0.05 else chance.randint(100, 5000)
            write([chance.choice(["Bergen", "Oslo", "Skien"]), price])


def jobs_that_ran(run: Run) -> list[str]:
    return [row["job"] for row in run.table() if row["attempt"]]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        folder, store = Path(made), Path(made, "monthly.run")
        (folder / "raw").mkdir()
        for number, month in enumerate(MONTHS):
            write_month(folder / "raw" / f"{month}.csv", seed=number)

        run = monthly(folder).run(workers=2, store=store).wait().raise_for_failures()
        print(gzip.decompress(Path(folder, "report.txt.gz").read_bytes()).decode(), end="")
        again = monthly(folder).run(workers=2, store=store).wait()
        print("the second run ran", jobs_that_ran(again))

        write_month(folder / "raw" / "2026-02.csv", seed=7)
        plan = monthly(folder).plan(store)
        for row in plan.table():
            print(f"{row['job']}: {row['action']}")
        third = monthly(folder).run(workers=2, store=store).wait().raise_for_failures()
        print("the third run ran", jobs_that_ran(third))
