"""Adds up what electricity meters measured, by windows of time: for each meter the hour with the
largest use (fixed windows), and for all meters the three hours in which most was used (sliding
windows). A window is a part of the key. The readings are generated, in no order of time."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyrite import Pipeline, Stage, agg
from pyrite import processors as p

HOUR = timedelta(hours=1)
Reading = dict[str, Any]  # meter, time, wh (watt hours)


def hour_of(time: datetime) -> datetime:
    return time.replace(minute=0)


def windows_of(time: datetime, *, length: int = 3) -> list[datetime]:
    """The beginnings of the windows of `length` hours that have this moment in them. One begins at
    each full hour."""
    return [hour_of(time) - n * HOUR for n in range(length)]


def peak_hours(readings: Stage[Reading]) -> Stage[tuple[str, list[tuple[str, datetime, int]]]]:
    """For each meter, a list with the hour of its largest use: (meter, hour, watt hours)."""
    by_hour = readings.group_by(lambda r: (str(r["meter"]), hour_of(r["time"])))
    used = by_hour.aggregate(agg.sum(lambda r: int(r["wh"])))
    flat = used.map(lambda found: (found[0][0], found[0][1], found[1]))
    return flat.group_by(lambda row: row[0]).top(1, key=lambda row: row[2])


def busiest(readings: Stage[Reading], number: int) -> Stage[tuple[datetime, int]]:
    """The windows of three hours in which most was used: (beginning, watt hours)."""
    in_windows = readings.flat_map(
        lambda r: [(start, int(r["wh"])) for start in windows_of(r["time"])]
    )
    used = in_windows.group_by(lambda pair: pair[0]).aggregate(agg.sum(lambda pair: pair[1]))
    return used.top(number, key=lambda pair: pair[1])


def some_readings(day: datetime, *, meters: int = 20) -> Iterator[str]:
    """One line every 15 minutes for each meter. More is used in the evening."""
    chance = random.Random(day.toordinal())
    for meter in range(meters):
        for quarter in range(24 * 4):
            time = day + quarter * timedelta(minutes=15)
            wh = chance.randint(20, 120) * (4 if 17 <= time.hour < 22 else 1)
            yield f"meter-{meter:02},{time.isoformat()},{wh}"


def write_readings(folder: Path) -> None:
    """A CSV file for each day of a week. Meters send when they like, so lines are in any order."""
    for number in range(7):
        day = datetime(2026, 3, 2) + timedelta(days=number)
        lines = list(some_readings(day))
        random.Random(number).shuffle(lines)
        (folder / f"{day:%Y-%m-%d}.csv").write_text("\n".join(["meter,time,wh", *lines]) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_readings(Path(folder))
        types = {"meter": str, "time": datetime, "wh": int}
        source = p.read_files(f"{folder}/*.csv", format="csv", schema=types)
        readings = Pipeline().read_from(source)
        for meter, [(_, hour, wh)] in sorted(peak_hours(readings).collect())[:3]:
            print(f"{meter} used most on {hour:%A at %H:00}: {wh / 1000:.2f} kWh")
        for start, wh in busiest(readings, 2).collect():
            print(f"all meters from {start:%A %H:00} on, in three hours: {wh / 1000:.1f} kWh")
