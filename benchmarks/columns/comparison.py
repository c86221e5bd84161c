"""`python -m benchmarks columns`: each query by all sides, in one warm session on two cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import pyrite
from benchmarks.columns.answers import Rows, check
from benchmarks.columns.tables import tables
from benchmarks.on_spark import CONF
from benchmarks.ratios import AtLeast, CannotRun, NoMoreThan, Side, compare, seconds
from pyrite import DAG, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 1
CORES = 2
ROWS = {"q1": 6_001_215, "q3": 6_001_215, "q6": 6_001_215, "q13": 1_500_000, "q18": 6_001_215}
"""The rows of the largest table of each query."""
POLARS, FRAME, LIGHT = "Polars, lazy", "Spark DataFrame", "pyrite by batches, light job"


def run(console: Console) -> None:
    os.environ["POLARS_MAX_THREADS"] = str(CORES)  # read when Polars is imported
    try:
        folder = tables(SCALE)
    except CannotRun as reason:
        console.print(f"columns: {reason}")
        return
    with pyrite.instance(spark_master=f"local[{CORES}, 4]", spark_conf=CONF) as pyr:
        for query in ROWS:
            console.print(compare(f"TPC-H {query}", _sides(pyr, folder, query), item="row"))


def _sides(pyr: pyrite.Instance, folder: Path, query: str) -> list[Side]:
    from benchmarks.columns import as_pipelines, by_batches, by_items, in_polars, in_spark

    spark: SparkSession = pyr.spark()
    expected = in_polars.FRAMES[query](folder).collect().rows()

    def side(name: str, answer: Callable[[], Rows], rounds: int, aim: Any = None) -> Side:
        def measured() -> float:
            rows: list[Rows] = []
            taken = seconds(lambda: rows.append(answer()))
            check(query, rows[0], expected)
            return taken

        return Side(name=name, items=ROWS[query], run=measured, rounds=rounds, aim=aim)

    def in_rows() -> Rows:
        listed = pyr.list(query)
        listed.clear()
        pyr.new_light_job(by_items.PIPELINES[query](folder)).execute().result()
        return list(listed)

    def in_batches(
        new_job: Callable[[Any], pyrite.Job],
        make: Callable[[Path], DAG | Pipeline] = by_batches.DAGS[query],
    ) -> Callable[[], Rows]:
        def answer() -> Rows:
            listed = pyr.list(query)
            listed.clear()
            new_job(make(folder)).execute().result()
            return [tuple(row.values()) for batch in listed for row in batch.to_pylist()]

        return answer

    def spilling() -> list[Side]:
        if query != "q18":
            return []
        make = partial(by_batches.q18, memory=6_000_000)
        name = f"{LIGHT}, 6 MB for groups"
        return [side(name, in_batches(pyr.new_light_job, make), 3)]

    return [
        side(POLARS, lambda: in_polars.FRAMES[query](folder).collect().rows(), 7),
        side(FRAME, lambda: in_spark.FRAMES[query](spark, folder).collect(), 5),
        side(LIGHT, in_batches(pyr.new_light_job), 7, NoMoreThan(times=2, than=POLARS)),
        side(
            "pyrite by batches, on Spark",
            in_batches(pyr.new_job),
            5,
            NoMoreThan(times=1, than=FRAME),
        ),
        side(
            "the same as a pipeline, light job",
            in_batches(pyr.new_light_job, as_pipelines.PIPELINES[query]),
            7,
        ),
        *spilling(),
        side("pyrite by items, light job", in_rows, 1, AtLeast(times=8, than=LIGHT)),
    ]
