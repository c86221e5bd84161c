"""In a Spark task: the threads that libraries for batches use, and where columnar processors
run."""

from __future__ import annotations

import os
import threading

import pyarrow as pa
import pytest

from pyrite import DAG, AbstractProcessor, Instance, between
from pyrite import processors as p
from tests.columns.dags import told


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


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


def test_metrics_count_rows(local_spark: Instance) -> None:
    dag = told(lambda edge: edge.distributed().partitioned(columns=["n"]))
    job = local_spark.new_job(dag).execute()
    job.result(60)
    assert job.metrics()["makes"]["emitted"] == job.metrics()["tells"]["received"] == 200
