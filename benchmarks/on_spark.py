"""Normal jobs against the same work written directly for Spark, with the same lambdas on RDDs and
with DataFrames. All sides use the same warm session."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

import pyrite
from benchmarks.ratios import AtLeast, AtMost, Side, WrongOutcome, compare, seconds
from pyrite import DAG, JobConfig, between
from pyrite import processors as p

WORDS, DISTINCT = 8_000_000, 50_000
RECORDS, KEYS = 5_000_000, 1_000_000
ROUNDS = 4
"""The first round of each side also warms up the session. The best round counts."""
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
}


def run(console: Console) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        pyrite.instance(spark_master="local[2, 4]", spark_conf=CONF) as pyr,
    ):
        words = word_sides(pyr, Path(folder), WORDS)
        console.print(compare("words on Spark, with combining", words, item="word"))
        console.print(
            compare("records on Spark, grouped without combining", _records(pyr), item="record")
        )
        console.print(compare("a trivial job of two stages", _trivial(pyr), item="job"))


def word_count(pattern: str) -> DAG:
    dag = DAG()
    lines = dag.vertex("lines", p.read_files(pattern))
    words = dag.vertex("words", p.flat_map(lambda line: line.split()))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    )
    total = dag.vertex(
        "total",
        p.group_and_accumulate(key=lambda kv: kv[0], initial=0, accumulate=lambda n, kv: n + kv[1]),
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, words)).edge(between(words, count).partitioned(key=lambda w: w))
    return dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0])).edge(
        between(total, sink)
    )


def record(number: int) -> tuple[str, int]:
    return f"key{number * 7919 % KEYS}", number


def grouped_records() -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(RECORDS)))
    records = dag.vertex("records", p.map(record))
    group = dag.vertex(
        "group",
        p.group_and_collect(lambda kv: kv[0], list, lambda values, kv: values.append(kv[1])),
    )
    sizes = dag.vertex("sizes", p.map(lambda kv: len(kv[1])))
    total = dag.vertex("total", p.accumulate(0, lambda total, size: total + size))
    dag.edge(between(source, records)).edge(
        between(records, group).distributed().partitioned(key=lambda kv: kv[0])
    )
    return (
        dag.edge(between(group, sizes))
        .edge(between(sizes, total))
        .edge(between(total, dag.vertex("sink", p.write_list("sizes"))))
    )


def write_words(folder: Path, count: int) -> None:
    choice = random.Random(1)
    vocabulary = [f"word{n}" for n in range(DISTINCT)]
    for part in range(4):
        with open(folder / f"{part}.txt", "w") as file:
            for _ in range(count // 40):
                file.write(" ".join(choice.choices(vocabulary, k=10)) + "\n")


def word_sides(pyr: pyrite.Instance, folder: Path, count: int, rounds: int = ROUNDS) -> list[Side]:
    """Counts the words of files, which are written into the folder first."""
    from pyspark.sql import functions as f

    write_words(folder, count)
    spark = pyr.spark()
    context = spark.sparkContext

    def check(counts: dict[str, int]) -> None:
        if sum(counts.values()) != count or len(counts) > DISTINCT:
            raise WrongOutcome(f"{sum(counts.values())} words were counted, of {count}")

    def ours() -> None:
        pyr.map("counts").clear()
        pyr.new_job(word_count(f"{folder}/*.txt")).execute().result()
        check(dict(pyr.map("counts")))

    def rdd() -> None:
        lines = context.textFile(str(folder), 4)
        pairs = lines.flatMap(lambda line: line.split()).map(lambda w: (w, 1))
        check(dict(pairs.reduceByKey(add, 2).collect()))

    def frame() -> None:
        words = spark.read.text(str(folder)).select(f.explode(f.split("value", " ")).alias("word"))
        check({row[0]: row[1] for row in words.groupBy("word").count().collect()})

    return [
        timed("pyrite", count, ours, rounds=rounds),
        timed("RDD, reduceByKey", count, rdd, AtLeast(times=3, than="pyrite"), rounds=rounds),
        # The aim is that Pyrite takes at most 1.3 x as long.
        timed("DataFrame", count, frame, AtLeast(times=1 / 1.3, than="pyrite"), rounds=rounds),
    ]


def _records(pyr: pyrite.Instance) -> list[Side]:
    context = pyr.spark().sparkContext

    def ours() -> None:
        pyr.list("sizes").clear()
        pyr.new_job(grouped_records()).execute().result()
        if sum(pyr.list("sizes")) != RECORDS:
            raise WrongOutcome("records were lost")

    def rdd() -> None:
        if (
            context.parallelize(range(RECORDS), 2)
            .map(record)
            .groupByKey(2)
            .mapValues(lambda values: len(list(values)))
            .values()
            .sum()
            != RECORDS
        ):
            raise WrongOutcome("records were lost")

    return [
        timed("pyrite", RECORDS, ours),
        timed("RDD, groupByKey", RECORDS, rdd, AtLeast(times=2.5, than="pyrite")),
    ]


def _trivial(pyr: pyrite.Instance) -> list[Side]:
    spark = pyr.spark()

    def by_hand() -> None:
        def first(batches: Any) -> Any:
            for _ in batches:
                pass
            yield pa.RecordBatch.from_pydict(
                {"member": pa.array([0, 1], pa.int32()), "items": pa.array([b"a", b"b"])}
            )

        def second(batches: Any) -> Any:
            yield from batches

        schema = "member int, items binary"
        spark.range(0, 2, 1, 2).mapInArrow(first, schema).repartitionById(2, "member").mapInArrow(
            second, schema
        ).toArrow()

    def ours() -> None:
        dag = DAG()
        source, sink = (
            dag.vertex("source", p.read_items([1, 2])),
            dag.vertex("sink", p.write_list("trivial")),
        )
        dag.edge(between(source, sink).distributed())
        pyr.new_job(dag, JobConfig(members=2)).execute().result()

    hand = "mapInArrow by hand"
    return [
        timed(hand, 1, by_hand, rounds=15),
        timed("pyrite", 1, ours, AtMost(times=1.2, than=hand), rounds=15),
    ]


def timed(
    name: str, items: int, work: Callable[[], None], aim: Any = None, rounds: int = ROUNDS
) -> Side:
    """A side that does all its work in one call."""
    return Side(name=name, items=items, run=lambda: seconds(work), rounds=rounds, aim=aim)
