"""Groups that do not fit into memory: a grouped count on Spark whose keys take four times the
memory limit of a Python worker."""

from __future__ import annotations

import sys

from rich.console import Console

import pyrite
from benchmarks.ratios import WrongOutcome, mark, seconds
from pyrite import DAG, between
from pyrite import processors as p

LIMIT_MB = 1600
"""The memory limit of each Python worker. Spark applies it to the address space, of which a worker
that has loaded Arrow already uses 1.3 GB."""
KEY_LENGTH = 1000
KEYS = 6_600_000


def key_of(number: int) -> str:
    return f"{number:0{KEY_LENGTH}d}"


def grouped_count() -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(KEYS)))
    keys = dag.vertex("keys", p.map(key_of))
    count = dag.vertex("count", p.group_and_accumulate(lambda key: key, 0, lambda n, key: n + 1))
    total = dag.vertex(
        "total", p.group_and_accumulate(lambda kv: kv[0], 0, lambda n, kv: n + kv[1])
    )
    number = dag.vertex("number", p.accumulate(0, lambda n, kv: n + 1))
    dag.edge(between(source, keys)).edge(between(keys, count).partitioned(key=lambda key: key))
    dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0]))
    return dag.edge(between(total, number)).edge(
        between(number, dag.vertex("sink", p.write_list("numbers")))
    )


def run(console: Console) -> None:
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.executor.pyspark.memory": f"{LIMIT_MB}m",
    }
    with pyrite.instance(spark_master="local[2, 4]", spark_conf=conf) as pyr:
        taken = seconds(lambda: pyr.new_job(grouped_count()).execute().result())
        if sum(pyr.list("numbers")) != KEYS:
            raise WrongOutcome(f"{sum(pyr.list('numbers'))} of {KEYS} keys were counted")
    times = KEYS * sys.getsizeof(key_of(0)) / (LIMIT_MB << 20)
    console.print(
        f"{KEYS:,} keys of {KEY_LENGTH} characters, {times:.1f} x the limit of {LIMIT_MB} MB per "
        f"Python worker, were counted in {taken:.0f} s; aim: more than 4 x: {mark(times > 4)}"
    )
