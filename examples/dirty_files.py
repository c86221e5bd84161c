"""Reads files of which some lines are broken, and asks a service that fails now and then. What
cannot be processed does not stop the job: it becomes a dead letter, with the reason. Then the cause
is known, and a second job takes in the dead letters again. The files are generated."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyrite
from pyrite import Pipeline, Retry, agg, dead_letter
from pyrite import processors as p

RATES = {"NOK": 0.09, "SEK": 0.088, "EUR": 1.0}


class Rates:
    """Stands for the client of a web service. Every tenth request fails; the next one succeeds."""

    def __init__(self) -> None:
        self.requests = 0

    def rate(self, currency: str) -> float:
        self.requests += 1
        if self.requests % 10 == 0:
            raise ConnectionError("the service does not answer")
        return RATES[currency]


def in_euros(rates: Rates, order: dict[str, Any]) -> tuple[str, float]:
    return order["country"], order["total"] * rates.rate(order["currency"])


def first_job(folder: str) -> Pipeline:
    """Totals by country, in totals/. Bad lines and orders are in bad/; more than 2 % would fail."""
    bad = dead_letter(p.write_files(f"{folder}/bad", format="jsonl"), at_most=0.02)
    again = Retry(3, wait=0.001, on=ConnectionError)
    pipe = Pipeline()
    orders = pipe.read_from(
        p.read_files(f"{folder}/orders/*.jsonl", format="jsonl"), name="read", on_error=bad
    )
    euros = orders.map_with(Rates, in_euros, name="in euros", on_error=bad, retry=again)
    by_country = euros.group_by(lambda pair: pair[0])
    totals = by_country.aggregate(agg.count(), agg.sum(lambda pair: pair[1]))
    rows = totals.map(lambda t: {"country": t[0], "orders": t[1], "euros": round(t[2])})
    rows.write_to(p.write_files(f"{folder}/totals", format="csv"))
    return pipe


def repaired(letter: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The order of a dead letter. A line that was cut off stays bad: it gives no order."""
    if letter["vertex"] == "in euros":  # of these, the currency was unknown: it was called "kr"
        yield letter["item"] | {"currency": "NOK"}


def second_job(folder: str) -> Pipeline:
    pipe = Pipeline()
    letters = pipe.read_from(p.read_files(f"{folder}/bad/*.jsonl", format="jsonl"))
    euros = letters.flat_map(repaired).map_with(Rates, in_euros, retry=Retry(3, wait=0.001))
    euros.map(lambda pair: pair[1]).aggregate(agg.count(), agg.sum()).write_to(p.write_list("late"))
    return pipe


def write_orders(folder: Path, *, orders: int = 3000) -> None:
    chance = random.Random(3)
    folder.mkdir()
    for part in range(3):
        lines = []
        for number in range(orders // 3):
            country, currency = chance.choice([("Norway", "NOK"), ("Sweden", "SEK")])
            currency = "kr" if number % 100 == 7 else currency
            order = {"country": country, "currency": currency, "total": chance.randint(50, 900)}
            text = json.dumps(order)
            lines.append(text[:20] if number % 250 == 9 else text)  # a line that was cut off
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, pyrite.instance() as pyr:
        write_orders(Path(folder, "orders"))
        execution = pyr.new_light_job(first_job(folder)).execute()
        execution.result()
        print(Path(folder, "totals", "part-00000.csv").read_text(), end="")
        for vertex in ("read", "in euros"):
            print(f"{vertex}: {execution.metrics()[vertex]['dead_letters']} dead letters")
        bad = Path(folder, "bad", "part-00000.jsonl").read_text().splitlines()
        reasons = {letter["error"] for letter in map(json.loads, bad) if letter["vertex"] != "read"}
        print("in euros failed with", reasons)

        pyr.new_light_job(second_job(folder)).execute().result()
        [(count, euros)] = pyr.list("late")
        print(f"repaired: {count} orders of {euros:.0f} euros")
