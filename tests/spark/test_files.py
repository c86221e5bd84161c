"""Files on Spark: they are listed once, by the driver, and may have URLs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrite import (
    DAG,
    Instance,
    JobCancelled,
    JobConfig,
    JobFailed,
    ProcessorContext,
    between,
)
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.processors.loops.steps import ReadStep
from pyrite.spark.execution import for_tasks


def test_all_tasks_read_the_files_that_the_driver_found(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    step = for_tasks("read", p.read_files(tmp_path / "*.txt"), None, readers=1).step
    (tmp_path / "0 came later.txt").write_text("late\n" * 100)
    assert isinstance(step, ReadStep)
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
    assert not (tmp_path / "new").exists()
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
        ("memory://in/*", "read", "exists separately in each Spark worker"),
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


def writing(folder: Path, act: Any) -> DAG:
    dag = DAG()
    read, acts = dag.vertex("read", p.read_items(range(100_000))), dag.vertex("act", p.map(act))
    dag.edge(between(read, acts))
    return dag.edge(between(acts, dag.vertex("write", p.write_files(folder))))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(turn, marks=pytest.mark.soak) for turn in range(1, 4))]
)
def test_a_job_that_is_cancelled_while_it_writes_leaves_nothing(
    pyr: Instance, tmp_path: Path, turn: int
) -> None:
    out = tmp_path / "new" / "out"

    def slow(n: int) -> str:
        (tmp_path / f"writing-{os.getpid()}").touch()
        time.sleep(0.0001)
        return "x" * 1000

    execution = pyr.new_job(writing(out, slow), JobConfig(members=4)).execute()
    wait_until(lambda: len(list(tmp_path.glob("writing-*"))) == 2)
    pids = [int(path.name.split("-")[1]) for path in tmp_path.glob("writing-*")]
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert not out.exists()
    wait_until(lambda: not any(is_running_task(pid) for pid in pids))
    assert not (tmp_path / "new").exists()


def is_running_task(pid: int) -> bool:
    """Whether a worker still has a file open that was removed."""
    try:
        return any(
            "part-" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")
        )
    except OSError:
        return False


def test_a_second_job_to_the_same_folder_is_refused_with_the_name_of_the_first(
    pyr: Instance, tmp_path: Path
) -> None:
    go_on = tmp_path / "go on"

    def hold(n: int) -> int:
        (tmp_path / "begun").touch()
        while not go_on.exists():
            time.sleep(0.01)
        return n

    out = tmp_path / "out"
    config = JobConfig(name="first", members=1)
    first = pyr.new_job(writing(out, hold), config).execute()
    wait_until((tmp_path / "begun").exists)
    for second in (pyr.new_job(writing(out, str)), pyr.new_light_job(writing(out, str))):
        refused = second.execute().exception(60)
        assert isinstance(refused, JobFailed)
        assert refused.vertex == "write"
        assert "because job 'first' (vertex 'write'" in str(refused)
    go_on.touch()
    first.result(60)
    assert len((out / "part-00000.txt").read_text().split()) == 100_000


@pytest.mark.parametrize("members", [1, 3])
def test_parquet_files_have_one_schema_and_null_columns_can_be_read(
    pyr: Instance, tmp_path: Path, members: int
) -> None:
    rows: list[dict[str, Any]] = [{"n": n, "none": None} for n in range(100)]
    rows += [{"n": 0.5}, {}]
    dag = DAG()
    read = dag.vertex("read", p.read_items(rows))
    write = dag.vertex("write", p.write_files(tmp_path / "out", format="parquet"))
    dag.edge(between(read, write).distributed())
    pyr.new_job(dag, JobConfig(members=members)).execute().result(60)
    frame = pyr.spark().read.parquet(str(tmp_path / "out"))
    assert frame.dtypes == [("n", "double"), ("none", "int")]
    wanted = sorted(float(row.get("n", -1)) for row in rows)
    assert sorted(-1.0 if row.n is None else row.n for row in frame.collect()) == wanted


def test_a_parquet_file_is_read_by_all_members(pyr: Instance, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": range(1000), "m": range(1000)}), tmp_path / "a.parquet", 100)
    dag = DAG()
    read = dag.vertex("read", p.read_files(tmp_path / "*", format="parquet", columns=["n"]))
    dag.edge(between(read, dag.vertex("write", p.write_list("out"))))
    execution = pyr.new_job(dag, JobConfig(members=4)).execute()
    execution.result(60)
    assert sorted(row["n"] for row in pyr.list("out")) == list(range(1000))
    emitted = [each["emitted"] for each in execution.metrics()["read"]["processors"]]
    assert sorted(emitted) == [200, 200, 300, 300]
