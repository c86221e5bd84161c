"""Jobs that are DAGs. On Spark, they run in a session of the worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.workload import Workload
from tests.workload.conftest import row_of, states


def word_count(text: str) -> DAG:
    dag = DAG()
    lines = dag.vertex("lines", p.read_items([text]))
    words = dag.vertex("words", p.flat_map(str.split))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, words))
    dag.edge(between(words, count).distributed().partitioned(key=lambda w: w))
    dag.edge(between(count, sink))
    return dag


def fails() -> DAG:
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items([1, 0]))
    inverse = dag.vertex("inverse", p.map(lambda n: 1 / n))
    sink = dag.vertex("sink", p.write_list("out"))
    dag.edge(between(numbers, inverse))
    dag.edge(between(inverse, sink))
    return dag


def test_dags_run_on_spark_or_light_with_the_same_result(tmp_path: Path) -> None:
    workload = (
        Workload()
        .add("spark", word_count("a b a"))
        .add("light", word_count("a b a"), light=True, after=["spark"])
    )
    workload.add("look", spark_of_worker, after=["light"])
    workload.add("again", word_count("b"), after=["look"]).add("fails", fails(), after=["again"])
    workload.add("look again", spark_of_worker, after=["again"])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert {job for job, state in states(run).items() if state != "DONE"} == {"fails"}
    assert run.results["spark"] == run.results["light"] == {"counts": {"a": 2, "b": 1}}
    assert run.results["again"] == {"counts": {"b": 1}}
    assert "inverse" in str(row_of(run, "fails")["error"])
    assert run.results["look"] == run.results["look again"]  # one session for all jobs


def spark_of_worker() -> tuple[int, int]:
    """The process ids of the worker and of Java. The session must be usable."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    assert session.range(3).count() == 3
    gateway: Any = session.sparkContext._gateway
    return os.getpid(), gateway.proc.pid
