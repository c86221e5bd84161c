"""Absolute amounts with a limit, instead of ratios: makes a table that says whether each amount is
within its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from benchmarks.ratios import mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An amount and its limit. The amount is None if it is not known on this system."""

    name: str
    amount: float | None
    limit: float
    unit: str


def report(title: str, readings: Sequence[Reading]) -> Table:
    table = Table("reading", title=title, title_justify="left")
    table.add_column("amount", justify="right", no_wrap=True)
    table.add_column("aim")
    for reading in readings:
        aim = f"at most {reading.limit:g} {reading.unit}"
        if reading.amount is None:
            table.add_row(reading.name, "-", f"{aim}: not known on this system")
        else:
            table.add_row(
                reading.name,
                f"{reading.amount:.3g} {reading.unit}",
                f"{aim}: {mark(reading.amount <= reading.limit)}",
            )
    return table
