"""Pipelines against the same DAGs by hand, as light jobs and on Spark; and a word count next to the
tools that also have pipelines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

import pyrite
from benchmarks.on_spark import CONF, DISTINCT, timed, word_count, write_words
from benchmarks.peers import Peer
from benchmarks.ratios import NoMoreThan, Side, WrongOutcome, compare, cpu_seconds, seconds
from benchmarks.tpch import by_hand
from benchmarks.tpch.answers import answer
from benchmarks.tpch.queries import QUERIES
from benchmarks.tpch.tables import write_tables
from pyrite import DAG, Pipeline
from pyrite import processors as p

WORDS = 2_000_000
ORDERS = 100_000
ROUNDS = 9
HAND = "DAG by hand"
AIM = NoMoreThan(times=1.05, than=HAND)


def run(console: Console) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        pyrite.instance(spark_master="local[2, 4]", spark_conf=CONF) as pyr,
    ):
        texts, tables = Path(folder, "words"), Path(folder, "tables")
        texts.mkdir()
        write_words(texts, WORDS)
        write_tables(tables, ORDERS)
        for work in _works(pyr, f"{texts}/*.txt", tables):
            # A light job does all its work in this process, so its CPU time can be measured.
            light = work.sides(pyr.new_light_job, cpu_seconds)
            console.print(compare(f"{work.title}, light job, CPU time", light))
            on_spark = work.sides(pyr.new_job, seconds)
            console.print(compare(f"{work.title}, on Spark", on_spark))
        console.print(compare("word count next to other tools", _peers(pyr, texts), item="word"))


def words(pattern: str) -> Pipeline:
    pipe = Pipeline()
    lines = pipe.read_from(p.read_files(pattern))
    counts = lines.flat_map(lambda line: line.split()).group_by(lambda word: word).count()
    counts.write_to(p.write_map("counts"))
    return pipe


@dataclass(frozen=True, slots=True)
class Work:
    """The same work as a DAG by hand and as a pipeline, and a check of what it wrote."""

    title: str
    items: int
    by_hand: Callable[[], DAG]
    pipeline: Callable[[], Pipeline]
    check: Callable[[], None]

    def sides(
        self,
        new_job: Callable[[Any], pyrite.Job],
        measured: Callable[[Callable[[], object]], float],
    ) -> list[Side]:
        def side(name: str, make: Callable[[], DAG | Pipeline], aim: NoMoreThan | None) -> Side:
            def run() -> float:
                taken = measured(lambda: new_job(make()).execute().result())
                self.check()
                return taken

            return Side(name=name, items=self.items, run=run, rounds=ROUNDS, aim=aim)

        return [side(HAND, self.by_hand, None), side("pipeline", self.pipeline, AIM)]


def _works(pyr: pyrite.Instance, pattern: str, tables: Path) -> list[Work]:
    return [
        Work(
            "word count",
            WORDS,
            partial(word_count, pattern),
            partial(words, pattern),
            partial(_check_counts, pyr),
        ),
        *(
            Work(
                f"TPC-H {name}",
                ORDERS,
                partial(make, tables),
                partial(QUERIES[name], tables),
                partial(_check_list, pyr, name, answer(name, tables)),
            )
            for name, make in by_hand.DAGS.items()
        ),
    ]


def _check_counts(pyr: pyrite.Instance) -> None:
    counts = dict(pyr.map("counts"))
    pyr.map("counts").clear()
    if sum(counts.values()) != WORDS or len(counts) > DISTINCT:
        raise WrongOutcome(f"{sum(counts.values())} of {WORDS} words were counted")


def _check_list(pyr: pyrite.Instance, name: str, expected: list[Any]) -> None:
    rows = list(pyr.list(name))
    pyr.list(name).clear()
    if rows != expected:
        raise WrongOutcome(f"the rows of {name} differ from those of DuckDB")


def _peers(pyr: pyrite.Instance, folder: Path) -> list[Side]:
    """The same word count with other tools. Those in child processes start once for each round;
    their start and imports are not measured."""
    pattern = f"{folder}/*.txt"
    context = pyr.spark().sparkContext

    def ours(new_job: Callable[[Any], pyrite.Job]) -> Callable[[], None]:
        def run() -> None:
            new_job(words(pattern)).execute().result()
            _check_counts(pyr)

        return run

    def rdd() -> None:
        lines = context.textFile(str(folder), 4)
        pairs = lines.flatMap(lambda line: line.split()).map(lambda word: (word, 1))
        if sum(dict(pairs.reduceByKey(lambda a, b: a + b, 2).collect()).values()) != WORDS:
            raise WrongOutcome("the RDD lost words")

    def peer(name: str, module: str) -> Side:
        child = Peer(f"benchmarks.{module}", "words", (pattern,))
        return Side(
            name=name,
            items=WORDS,
            run=lambda: child.run_checked(WORDS, DISTINCT),
            rounds=2,
        )

    return [
        timed("pyrite, light job", WORDS, ours(pyr.new_light_job)),
        timed("pyrite, on Spark", WORDS, ours(pyr.new_job)),
        timed("PySpark RDD", WORDS, rdd),
        peer("Dask bag, 2 processes", "with_dask_bag"),
        peer("Beam, local runner", "with_beam"),
        peer("Bytewax, 1 worker", "with_bytewax"),
    ]
