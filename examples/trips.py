"""Totals of taxi trips by zone and hour, in columns: batches of rows (Arrow) go through the steps,
and no row becomes a Python object before the end. Reads Parquet files, computes new columns, joins
a small table, groups, and writes folders by zone. The trips are generated."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyrite import BatchStage, Pipeline
from pyrite import processors as p

ZONES = [(1, "Airport"), (2, "Centre"), (3, "Harbour"), (4, "Park")]


def with_speed_and_hour(trips: Any) -> Any:
    """Works on a whole batch: `trips` is a pyarrow.RecordBatch."""
    hours = pc.divide(pc.cast(trips["seconds"], pa.float64()), 3600)
    table = pa.table(trips)
    table = table.append_column("speed", pc.divide(trips["km"], hours))
    return table.append_column("hour", pc.hour(trips["start"]))


def totals(trips: BatchStage, zones: BatchStage) -> BatchStage:
    """Trips, kilometres and the mean speed by the name of the zone and the hour."""
    return (
        trips.map_batches(with_speed_and_hour, format="arrow")
        .filter(pc.field("speed") < 120)  # a meter that was left on
        .join(zones, on="zone")
        .group_by("name", "hour")
        .aggregate(trips=("km", "count"), km=("km", "sum"), speed=("speed", "mean"))
    )


def write_trips(folder: Path, *, trips: int = 100_000) -> None:
    """The same four files each time."""
    chance = np.random.default_rng(5)
    start = np.datetime64("2026-03-02T00:00:00", "s")
    for part in range(4):
        size = trips // 4
        seconds = chance.integers(120, 3600, size)
        table = {
            "zone": chance.integers(1, 6, size),  # nobody knows zone 5
            "start": start + chance.integers(0, 7 * 86400, size).astype("timedelta64[s]"),
            "seconds": seconds,
            "km": np.round(seconds / 3600 * chance.uniform(10, 125, size), 1),
        }
        pq.write_table(pa.table(table), folder / f"{part}.parquet")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_trips(Path(folder))
        pipe = Pipeline()
        trips = pipe.read_from(p.read_batches(f"{folder}/*.parquet"))
        zones = pipe.read_from(ZONES).batches({"zone": "int64", "name": "string"})
        found = totals(trips, zones)
        found.write_to(p.write_batches(f"{folder}/totals", partition_by="name"))
        pipe.run()

        print("written:", sorted(path.name for path in Path(folder, "totals").glob("name=*")))
        written = Pipeline().read_from(
            p.read_batches(f"{folder}/totals/*/*.parquet", filter=pc.field("hour") == 8)
        )
        for row in written.sort("name").rows().collect():
            print(f"{row['name']:7} at 8: {row['trips']} trips, {row['speed']:.1f} km/h")
