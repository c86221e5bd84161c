"""Sources and sinks of batches in files, in jobs that run in several processes."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from pyrite import DAG, Instance, JobConfig, between
from pyrite import processors as p
from tests.columns.test_reading import write


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance with the Spark session is shared, so its threads stay."""


def ids_of(path: Path) -> DAG:
    """Reads the ids from 15 on to the list `ids`."""
    dag = DAG()
    read = dag.vertex("read", p.read_batches(path, filter=pc.field("id") >= 15))
    ids = dag.vertex("ids", p.flat_map(lambda batch: batch["id"].to_pylist()))
    return dag.edge(between(read, ids)).edge(between(ids, dag.vertex("out", p.write_list("ids"))))


def test_on_spark_the_tasks_share_the_row_groups(local_spark: Instance, tmp_path: Path) -> None:
    local_spark.list("ids").clear()
    local_spark.new_job(ids_of(write(tmp_path)), JobConfig(members=2)).execute().result(60)
    assert sorted(local_spark.list("ids")) == [*range(15, 100)]
