"""Files on Spark: they are listed once, by the driver, and may have URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrite import DAG, Instance, JobConfig, JobFailed, ProcessorContext, between
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.processors.steps import Source
from pyrite.spark.execution import for_tasks


def test_all_tasks_read_the_files_that_the_driver_found(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    step = for_tasks("read", p.read_files(tmp_path / "*.txt"), None).step
    (tmp_path / "0 came later.txt").write_text("late\n" * 100)
    assert isinstance(step, Source)
    read: list[str] = []
    for member in range(3):
        context = ProcessorContext(
            vertex_name="read",
            local_parallelism=1,
            member_count=3,
            job_id="j",
            execution_id="e",
            collections=MemoryCollections(),
            member_index=member,
            local_index=0,
        )
        read += step.open(context)
    assert read == ["a", "b"]


def copying(source: str, target: str) -> DAG:
    dag = DAG()
    read, numbers = dag.vertex("read", p.read_files(source)), dag.vertex("numbers", p.map(int))
    dag.edge(between(read, numbers).distributed())
    return dag.edge(between(numbers, dag.vertex("write", p.write_files(target, format="parquet"))))


def test_urls_are_read_and_written(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(1000)))
    dag = copying(f"{tmp_path.as_uri()}/*.txt", f"{tmp_path.as_uri()}/new/out")
    failed = pyr.new_job(dag, JobConfig(members=2)).execute().exception(60)
    assert isinstance(failed, JobFailed)
    assert failed.vertex == "write"  # it writes rows
    assert not (tmp_path / "new" / "out").exists()
    dag = DAG()
    read, rows = (
        dag.vertex("read", p.read_files(f"{tmp_path.as_uri()}/*.txt")),
        dag.vertex("rows", p.map(lambda n: {"n": int(n)})),
    )
    dag.edge(between(read, rows).distributed())
    dag.edge(
        between(
            rows,
            dag.vertex("write", p.write_files(f"{tmp_path.as_uri()}/new/out", format="parquet")),
        )
    )
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    back = pyr.spark().read.parquet(f"{tmp_path}/new/out")
    assert sorted(row.n for row in back.collect()) == list(range(1000))


@pytest.mark.parametrize(
    ("source", "vertex", "message"),
    [
        ("memory://in/*", "read", "each of Spark's workers"),
        ("/no/such/*.txt", "read", "no file matches"),
    ],
)
def test_files_that_tasks_could_not_read_are_named_before_any_runs(
    pyr: Instance, source: str, vertex: str, message: str
) -> None:
    failed = pyr.new_job(copying(source, "/tmp"), JobConfig(members=2)).execute().exception(60)
    assert isinstance(failed, JobFailed)
    assert failed.vertex == vertex
    assert message in str(failed)
