"""Sources and sinks of batches in files, in jobs that run in several processes: each row once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from pyrite import DAG, Instance, JobConfig, between
from pyrite import processors as p
from pyrite.cluster import LocalCluster
from tests.columns.test_reading import table, write
from tests.durable.threads import running
from tests.processors.files.jobs import visible


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance with the Spark session is shared, so its threads stay."""


def copying(folder: Path) -> DAG:
    """Copies the rows from 15 on to the folder `out`."""
    write(folder, "in/a"), write(folder, "in/b", rows=1000)
    dag = DAG()
    read = dag.vertex("read", p.read_batches(folder / "in/*", filter=pc.field("id") >= 15))
    write_ = dag.vertex("write", p.write_batches(folder / "out"), local_parallelism=2)
    return dag.edge(between(read, write_).distributed())


def check(folder: Path) -> None:
    copied = table(folder / "out" / "*")
    assert copied.column_names == ["id", "name", "x"]
    assert sorted(copied["id"].to_pylist()) == sorted([*range(15, 100)] * 2)


def test_on_spark(local_spark: Instance, tmp_path: Path) -> None:
    local_spark.new_job(copying(tmp_path), JobConfig(members=2)).execute().result(60)
    check(tmp_path)
    assert visible(tmp_path / "out") == [f"part-{n:05d}.parquet" for n in range(4)]


def test_on_members(tmp_path: Path) -> None:
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        client.new_light_job(copying(tmp_path)).execute().result(60)
    check(tmp_path)


def test_in_a_durable_job(tmp_path: Path) -> None:
    with running(tmp_path / "folder", peers=2) as threads:
        threads.execute(copying(tmp_path)).result(60)
    check(tmp_path)
