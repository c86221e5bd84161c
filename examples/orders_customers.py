"""Joins orders (JSON lines) with customers (CSV), adds up the totals by country, and writes them to
Parquet files and to a table of SQLite; with `--spark` on Spark. Run it again: the table and the
files are the same."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyrite
from pyrite import Pipeline, Source, agg
from pyrite import processors as p

COUNTRIES = ["Chile", "Ghana", "Japan", "Latvia"]


def make_files(folder: Path, *, customers: int = 200, orders: int = 5000) -> None:
    """The same files each time. Some orders are of customers that nobody knows."""
    chance = random.Random(7)
    rows = [f"{number},{chance.choice(COUNTRIES)}" for number in range(customers)]
    (folder / "customers.csv").write_text("\n".join(["id,country", *rows]) + "\n")
    (folder / "orders").mkdir()
    for part in range(4):
        lines = [
            json.dumps(
                {"customer": chance.randrange(customers + 10), "cents": chance.randrange(99)}
            )
            for _ in range(orders // 4)
        ]
        (folder / "orders" / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


def totals_by_country(folder: str) -> Pipeline:
    pipe = Pipeline()
    orders = pipe.read_from(p.read_files(f"{folder}/orders/*.jsonl", format="jsonl"))
    customers = pipe.read_from(
        p.read_files(f"{folder}/customers.csv", format="csv", schema={"id": int, "country": str})
    )
    totals = (
        orders.filter(lambda order: order["cents"] > 0)
        .join(
            customers,
            left=lambda order: order["customer"],
            right=lambda customer: customer["id"],
            broadcast=True,
        )
        .group_by(lambda pair: pair[1]["country"])
        .aggregate(agg.count(), agg.sum(lambda pair: pair[0]["cents"]))
        .map(lambda found: {"country": found[0], "orders": found[1], "cents": found[2]})
    )
    totals.write_to(p.write_files(f"{folder}/totals", format="parquet"))
    types = {"country": str, "orders": int, "cents": int}
    totals.write_to(
        p.write_sql(f"sqlite:///{folder}/shop.db", "totals", key="country", create=types)
    )
    return pipe


def sorted_rows(source: Source[dict[str, Any]]) -> list[dict[str, Any]]:
    return Pipeline().read_from(source).sort(lambda row: row["country"]).collect()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        make_files(Path(folder))
        pipe = totals_by_country(folder)
        if "--spark" in sys.argv:
            with pyrite.instance() as pyr:
                pipe.run(on=pyr)
        else:
            pipe.run()
        files = sorted_rows(p.read_files(f"{folder}/totals/*.parquet", format="parquet"))
        table = sorted_rows(p.read_sql(f"sqlite:///{folder}/shop.db", "totals"))
        for row in table:
            print(f"{row['country']}: {row['orders']} orders, {row['cents'] / 100:.2f}")
        print("the files have the same:", files == table)
