"""How the cost of an item on Spark grows: with the number of members, of partitions and of items.

Pairs are grouped by key without combining, so that every item crosses the exchange. There are more
tasks than cores, so time is work: what an item costs is the time divided by the number of items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

import pyrite
from benchmarks.ratios import WrongOutcome, mark, seconds
from pyrite import DAG, JobConfig, between
from pyrite import processors as p
from pyrite.partitioning import default_partition_count
from pyrite.spark.packets import FULL_PACKET_BYTES, OPEN_BYTES_HELD

ITEMS_PER_MEMBER = 200_000
MEMBERS = (2, 8, 32, 128)
PARTITIONED_ITEMS = 2_000_000
PARTITIONS = (271, 1009, 4001, 16001)
ITEMS = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
ITEMS_PER_KEY = 4
CONF = {"spark.ui.enabled": "false", "spark.driver.memory": "4g"}


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    items: int
    config: JobConfig


def run(console: Console) -> None:
    with pyrite.instance(spark_master="local[2, 4]", spark_conf=CONF) as pyr:
        grouped(pyr, Case("warm up", 1_000_000, JobConfig(members=2)))
        console.print(
            _table(
                pyr,
                f"{ITEMS_PER_MEMBER:,} items per member",
                [Case(f"{n} members", ITEMS_PER_MEMBER * n, JobConfig(members=n)) for n in MEMBERS],
                most=1.5,
            )
        )
        console.print(
            _table(
                pyr,
                f"{PARTITIONED_ITEMS:,} items on 2 members",
                [
                    Case(f"{n} partitions", PARTITIONED_ITEMS, JobConfig(members=2, partitions=n))
                    for n in PARTITIONS
                ],
            )
        )
        console.print(
            _table(
                pyr,
                "more and more items on 2 members",
                [Case(f"{n:,} items", n, JobConfig(members=2)) for n in ITEMS],
                most=1.2,
            )
        )


def grouped(pyr: pyrite.Instance, case: Case) -> float:
    """The duration of the job of a case in seconds."""
    keys = max(1, case.items // ITEMS_PER_KEY)

    def pair(number: int) -> tuple[str, int]:
        return f"key{number * 7919 % keys}", number

    dag = DAG()
    source = dag.vertex("source", p.read_items(range(case.items)))
    pairs = dag.vertex("pairs", p.map(pair))
    group = dag.vertex(
        "group",
        p.group_and_collect(lambda kv: kv[0], list, lambda values, kv: values.append(kv[1])),
    )
    sizes = dag.vertex("sizes", p.map(lambda kv: len(kv[1])))
    total = dag.vertex("total", p.accumulate(0, lambda total, size: total + size))
    sink = dag.vertex("sink", p.write_list("sizes"))
    dag.edge(between(source, pairs)).edge(between(group, sizes)).edge(between(sizes, total))
    dag.edge(between(pairs, group).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(total, sink))
    pyr.list("sizes").clear()
    taken = seconds(lambda: pyr.new_job(dag, case.config).execute().result())
    if sum(pyr.list("sizes")) != case.items:
        raise WrongOutcome(f"{sum(pyr.list('sizes'))} items of {case.items} arrived")
    return taken


PICKLED_BYTES_PER_ITEM = 17
"""The size of a pair such as ("key1234567", 1234567) in a packet."""


def expected_packets(case: Case) -> int:
    """The number of rows that cross the exchange, by the model in docs/scale.md."""
    members = case.config.members or 1
    partitions = case.config.partitions or default_partition_count(members)
    bytes_per_task = case.items * PICKLED_BYTES_PER_ITEM / members
    size = min(FULL_PACKET_BYTES, OPEN_BYTES_HELD / partitions)
    reports = 1
    return int(members * (max(partitions, bytes_per_task / size) + reports))


def shuffle_records(pyr: pyrite.Instance) -> int:
    """The number of rows that all exchanges of the session have written so far."""
    spark = pyr.spark()
    java: Any = spark
    no_quantiles = java.sparkContext._gateway.new_array(java._jvm.double, 0)
    no_status = java._jvm.java.util.ArrayList()
    store = java.sparkContext._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, no_quantiles, no_status)
    return sum(stages.apply(n).shuffleWriteRecords() for n in range(stages.size()))


def _table(
    pyr: pyrite.Instance,
    title: str,
    cases: list[Case],
    *,
    most: float | None = None,
    rounds: int = 2,
) -> Table:
    """The cost per item in each case, and its ratio to the first case. The aim is a ratio of at
    most `most`."""
    best = {case.name: float("inf") for case in cases}
    packets: dict[str, int] = {}
    for _ in range(rounds):
        for case in cases:
            before = shuffle_records(pyr)
            best[case.name] = min(best[case.name], grouped(pyr, case))
            packets[case.name] = shuffle_records(pyr) - before
    table = Table("case", title=title, title_justify="left")
    for heading in ("items", "best s", "µs per item", "ratio", "packets", "of the model"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("aim")
    first = best[cases[0].name] / cases[0].items
    for case in cases:
        cost = best[case.name] / case.items
        aim = "" if most is None else f"at most {most} x: {mark(cost / first <= most)}"
        table.add_row(
            case.name,
            f"{case.items:,}",
            f"{best[case.name]:.2f}",
            f"{cost * 1e6:.3f}",
            f"{cost / first:.2f} x",
            f"{packets[case.name]:,}",
            f"{expected_packets(case):,}",
            aim,
        )
    return table
