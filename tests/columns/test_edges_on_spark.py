"""Batches of rows cross the exchanges of Spark: each row arrives once, where its key belongs."""

from __future__ import annotations

import os
import threading
from typing import Any

import pyarrow as pa
import pytest

from pyrite import DAG, AbstractProcessor, Instance, between
from pyrite import processors as p
from tests.columns.dags import Makes, Rows, numbered, owner, told

MEMBERS = 2
ALL = [row for n in range(10) for row in numbered(20 * n, 20).to_pylist()]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def arrived(pyr: Instance, dag: DAG) -> Rows:
    pyr.list("told").clear()
    pyr.new_job(dag).execute().result(60)
    return list(pyr.list("told"))


def in_order(rows: Rows) -> list[dict[str, Any]]:
    return sorted((row for _, row in rows), key=lambda row: row["n"])


def test_each_row_goes_where_its_key_belongs(local_spark: Instance) -> None:
    dag = told(lambda edge: edge.distributed().partitioned(columns=["text"]))
    rows = arrived(local_spark, dag)
    assert in_order(rows) == ALL
    for index, row in rows:
        assert index == owner(row["text"], 3, MEMBERS)


@pytest.mark.parametrize("shape", ["unicast", "broadcast", "all_to_one"])
def test_other_edges_carry_whole_batches(local_spark: Instance, shape: str) -> None:
    dag = told(lambda edge: getattr(edge.distributed(), shape)(), receivers=1)
    rows = arrived(local_spark, dag)
    times = MEMBERS if shape == "broadcast" else 1
    assert in_order(rows) == [row for row in ALL for _ in range(times)]


class Surroundings(AbstractProcessor):
    """Emits what a processor in a task has around it."""

    cooperative = False

    def complete(self) -> None:
        threads = threading.current_thread().name
        self.emit((threads, os.environ.get("POLARS_MAX_THREADS"), pa.cpu_count()))


class Columnar(Surroundings):
    columnar = True


def surroundings(pyr: Instance, processor: type[Surroundings]) -> list[tuple[str, str, int]]:
    dag = DAG()
    tells = dag.vertex("tells", processor, local_parallelism=1)
    dag.edge(between(tells, dag.vertex("keeps", p.write_list("told"))))
    pyr.list("told").clear()
    pyr.new_job(dag).execute().result(60)
    return list(pyr.list("told"))


def test_a_task_uses_as_many_threads_as_spark_gives_it(local_spark: Instance) -> None:
    assert {each[1:] for each in surroundings(local_spark, Surroundings)} == {("1", 1)}


def test_columnar_processors_run_on_the_thread_of_the_task(local_spark: Instance) -> None:
    (other,) = {each[0] for each in surroundings(local_spark, Surroundings)}
    (own,) = {each[0] for each in surroundings(local_spark, Columnar)}
    assert other.startswith("pyrite")
    assert not own.startswith("pyrite")


def test_lists_of_batches_come_to_the_driver(local_spark: Instance) -> None:
    dag = DAG()
    reads = dag.vertex("reads", p.read_items([numbered(0, 100_000).slice(7, 3)]))
    dag.edge(between(reads, dag.vertex("keeps", p.write_list("told"))))
    local_spark.list("told").clear()
    local_spark.new_job(dag).execute().result(60)
    assert list(local_spark.list("told")) == [numbered(7, 3)]


def test_metrics_count_rows(local_spark: Instance) -> None:
    dag = told(lambda edge: edge.distributed().partitioned(columns=["n"]), source=Makes)
    job = local_spark.new_job(dag).execute()
    job.result(60)
    assert job.metrics()["makes"]["emitted"] == job.metrics()["tells"]["received"] == 200
