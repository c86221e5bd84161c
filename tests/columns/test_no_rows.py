"""Batches without rows only tell which columns there are. They change no result, and fail nothing,
however many processors there are."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyrite import DAG, Instance, JobConfig, JobFailed, Pipeline, between, instance, skip
from pyrite import processors as p
from pyrite.columns.frames import as_batch
from pyrite.pipeline import BatchStage
from tests.columns.dags import told
from tests.columns.test_memory import CONTEXT

ROW = pa.record_batch({"k": [1], "s": ["a"]})


def grouped_into_four(pipe: Pipeline) -> BatchStage:
    """One row, over an edge to four processors."""
    stage = pipe.read_from([(1, "a")]).batches(ROW.schema)
    return stage.group_by("k", "s").aggregate(n=("k", "count"), parallelism=4)


def test_a_function_that_fails_without_rows_fails_no_job() -> None:
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.column("k")[0].as_py() == 1 else None

    stage = grouped_into_four(Pipeline())
    for options in ({}, {"on_error": skip()}):
        found = stage.map_batches(first, parallelism=4, **options).rows().collect()  # type: ignore[arg-type]
        assert found == [{"k": 1, "s": "a", "n": 1}]


def test_nothing_makes_no_rows() -> None:
    def total(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(pl.col("n").sum())

    stage = grouped_into_four(Pipeline()).map_batches(total, "polars", parallelism=4)
    assert stage.rows().collect() == [{"n": 1}]


def test_types_of_frames_without_rows_do_not_count() -> None:
    def upper(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"k": frame["k"], "s": [s.upper() for s in frame["s"]]})

    pipe = Pipeline()
    stage = grouped_into_four(pipe).map_batches(upper, "pandas", parallelism=4)
    assert stage.sort("s").rows().collect() == [{"k": 1, "s": "A"}]
    assert stage.group_by("s").aggregate(n=("k", "sum")).rows().collect() == [{"s": "A", "n": 1}]
    assert stage.join(stage.select("s"), on="s").rows().collect() == [{"k": 1, "s": "A"}]


def test_they_are_written_only_if_there_are_no_rows(tmp_path: Path) -> None:
    def upper(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"s": [s.upper() for s in frame["s"]]})

    pipe = Pipeline()
    stage = grouped_into_four(pipe).map_batches(upper, "pandas", parallelism=4)
    stage.write_to(p.write_batches(tmp_path / "out"))
    pipe.run()
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"s": "A"}]


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_without_rows_do_not_conflict_with_others(tmp_path: Path, format: Any) -> None:
    def upper(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"s": [s.upper() for s in frame["s"]]})

    pipe = Pipeline()
    stage = grouped_into_four(pipe).map_batches(upper, "pandas", parallelism=4)
    stage.write_to(p.write_batches(tmp_path / "out", format), parallelism=4)
    pipe.run()
    found = Pipeline().read_from(p.read_batches(tmp_path / "out" / "*", format)).rows().collect()
    assert found == [{"s": "A"}]


def test_processors_of_ones_own_get_no_batch_without_rows(pyr: Instance) -> None:
    dag = told(lambda edge: edge.partitioned(columns=["k"]), source=p.read_items([ROW]))
    pyr.list("told").clear()
    execution = pyr.new_light_job(dag).execute()
    execution.result(20)
    assert [row for _, row in pyr.list("told")] == [{"k": 1, "s": "a"}]


def test_a_durable_source_without_rows_tells_its_columns(tmp_path: Path) -> None:
    pq.write_table(ROW.schema.empty_table(), tmp_path / "none.parquet")
    pipe = Pipeline()
    left = pipe.read_from([(1, "a"), (2, "b")]).batches(ROW.schema)
    right = pipe.read_from(p.read_batches(tmp_path / "none.parquet"))
    left.join(right, on="k", how="left").rows().write_to(p.write_list("joined"))
    with instance(durable=tmp_path / "store", peers=1) as pyr:
        pyr.new_durable_job(pipe, JobConfig(members=2)).execute().result(60)
        found = sorted(pyr.list("joined"), key=lambda row: row["k"])
    assert found == [{"k": k, "s": s, "s_right": None} for k, s in [(1, "a"), (2, "b")]]


def test_an_error_without_rows_is_not_hidden_where_there_are_rows() -> None:
    def never(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("never")

    with pytest.raises(JobFailed, match="never"):
        grouped_into_four(Pipeline()).map_batches(never).collect()


@pytest.mark.parametrize("step", ["sort", "group", "join"])
def test_small_slices_do_not_keep_large_batches(step: str) -> None:
    def cut(batch: pa.RecordBatch) -> pa.RecordBatch:
        wide = pa.record_batch({"k": np.arange(1 << 20)})  # 8 MB
        return wide.slice(batch.column("k")[0].as_py(), 10)

    pipe = Pipeline()
    numbers = pipe.read_from([ROW] * 60).batches(ROW.schema).map_batches(cut)
    made: Any = {
        "sort": lambda: numbers.sort("k"),
        "group": lambda: numbers.group_by("k").aggregate(n=("k", "count")),
        "join": lambda: numbers.join(numbers, on="k", how="semi"),
    }[step]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made.collect()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 << 10  # kilobytes; 60 batches have 480 MB


def test_a_dag_by_hand_with_a_columnar_vertex_is_told() -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([ROW]))
    group = dag.vertex("group", p.group_batches([], {"n": ("k", "count")}), local_parallelism=3)
    out, rows = dag.vertex("out", p.write_list("n")), dag.vertex("rows", p.rows())
    dag.edge(between(read, group).partitioned(columns=["k"]))
    dag.edge(between(group, rows)).edge(between(rows, out))
    with instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        assert sorted(row["n"] for row in pyr.list("n")) == [0, 0, 1]


def work_of(supplier: Any) -> Any:
    return supplier.step.open(CONTEXT)


def continued(supplier: Any, work: Any) -> Any:
    """The work of another processor, which continues from a snapshot."""
    other = work_of(supplier)
    for key, value in list(work.save()):
        other.restore(key, value)
    return other


def rows_of(made: Any) -> list[Any]:
    return [row for frame in made for row in as_batch(frame).to_pylist()]


@pytest.mark.parametrize("how", ["right", "full", "left"])
def test_a_snapshot_of_a_join_knows_the_columns_of_both_sides(how: Any) -> None:
    supplier = p.join_batches(["k"], ["k"], how)
    work = work_of(supplier)
    list(work.take(ROW, 0))
    list(work.end_edge(0))
    made = rows_of(work.take(pa.record_batch({"k": [2], "s": ["b"]}), 1))
    made += rows_of(continued(supplier, work).end())
    missing = {"k": 1, "s": None, "s_right": "a"}
    alone = {"k": 2, "s": "b", "s_right": None}
    expected = {"right": [missing], "full": [alone, missing], "left": [alone]}
    assert sorted(made, key=lambda row: -row["k"]) == expected[how]


@pytest.mark.parametrize(
    "supplier", [p.sort_batches(["k"]), p.group_batches(["k"], {"n": ("s", "count")})]
)
def test_a_snapshot_without_rows_knows_the_columns(supplier: Any) -> None:
    work = work_of(supplier)
    list(work.take(ROW.slice(0, 0), 0))
    (frame,) = continued(supplier, work).end()
    assert as_batch(frame).schema.names[0] == "k"


def test_frames_without_rows_after_a_snapshot_do_not_count() -> None:
    supplier = p.sort_batches(["k"])
    work = work_of(supplier)
    list(work.take(ROW, 0))
    other = continued(supplier, work)
    list(other.take(pa.record_batch({"k": pa.array([], pa.string()), "s": pa.array([])}), 0))
    assert rows_of(other.end()) == [{"k": 1, "s": "a"}]
