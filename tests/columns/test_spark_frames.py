"""Spark DataFrames as sources and sinks of batches."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyrite import DAG, Instance, InvalidDAG, JobConfig, Pipeline, between
from pyrite import processors as p
from pyrite.processors.columns.row_batches import RowBatches
from pyrite.processors.loops.steps import BadItem
from pyrite.spark.frames import EmitRows
from tests.columns.test_reading import CONTEXT


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance with the Spark session is shared, so its threads stay."""


def run(pyr: Instance, source: Any, sink: Any) -> None:
    dag = DAG()
    dag.edge(between(dag.vertex("source", source), dag.vertex("sink", sink)))
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)


def test_batches_of_a_dataframe_are_written_to_another(
    local_spark: Instance, tmp_path: Path
) -> None:
    spark, out = local_spark.spark(), str(tmp_path / "out")
    columns = ["id", "concat('n', id % 10) as name", "current_timestamp() as t", "array(id) as l"]
    df = spark.range(0, 50_000, 1, 3).selectExpr(*columns).cache()
    read = p.read_spark(df, batches=True)
    run(
        local_spark,
        read,
        p.write_spark(
            lambda made: made.write.parquet(out), "name string, l array<long>, t timestamp, id int"
        ),
    )
    made = spark.read.parquet(out)
    assert dict(made.dtypes)["id"] == "int"
    assert made.selectExpr("cast(id as long) id", "name", "t", "l").exceptAll(df).count() == 0
    assert made.count() == 50_000


def test_batches_of_a_dataframe_have_many_rows(local_spark: Instance) -> None:
    df = local_spark.spark().range(0, 100_000, 1, 2)
    local_spark.list("out").clear()
    run(local_spark, p.read_spark(df, batches=True), p.write_list("out"))
    found = list(local_spark.list("out"))
    assert {type(batch) for batch in found} == {pa.RecordBatch}
    assert len(found) == 2  # 50,000 rows each, put together from batches of 10,000
    assert sorted(pa.Table.from_batches(found)["id"].to_pylist()) == [*range(100_000)]


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        ({"m": [1]}, "writes rows with the columns n, and got a batch with the columns m; choose"),
        ({"n": ["x"]}, "cannot write column 'n' of a batch, which is string, as int64: "),
    ],
)
def test_batches_that_do_not_fit_the_schema_are_explained(batch: Any, why: str) -> None:
    writer = EmitRows(0, pa.schema({"n": pa.int64()})).open(CONTEXT)
    with pytest.raises(BadItem, match=f"vertex 'read' {why}"):
        writer.write([pa.record_batch(batch)])


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ((1, 1.5), "cannot put 1.5 of type float into column 'n' of type int64: it would become 1"),
        ({"n": "x"}, "cannot put 'x' of type str into column 'n' of type int64: "),
        ((None, 1), "cannot make a row of (None, 1): column 'id' is null, but its schema says"),
        ({"m": 1}, "writes rows with the columns id, n; an item must be a dict with no other"),
    ],
)
def test_rows_that_would_change_or_do_not_fit_are_refused(item: Any, why: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    writer = EmitRows(0, schema).open(CONTEXT)
    with pytest.raises(BadItem, match=re.escape(f"vertex 'read' {why}")) as bad:
        writer.write([(1, 2), item, item])
    assert bad.value.item is item


def test_a_pipeline_reads_batches_of_a_dataframe(local_spark: Instance) -> None:
    df = local_spark.spark().range(3)
    stage = Pipeline().read_from(p.read_spark(df, batches=True))
    assert sorted(stage.rows().collect(on=local_spark), key=str) == [{"id": n} for n in range(3)]
    with pytest.raises(InvalidDAG, match=r"batches of read_spark\(\) must be True or False"):
        p.read_spark(df, batches=1)  # type: ignore[call-overload]


def test_a_dataframe_without_rows_tells_its_columns(local_spark: Instance) -> None:
    spark = local_spark.spark()
    pipe = Pipeline()
    none = pipe.read_from(p.read_spark(spark.range(0).selectExpr("id", "'x' as s"), batches=True))
    some = pipe.read_from(p.read_spark(spark.range(3), batches=True))
    assert none.group_by().aggregate(n=("id", "count")).rows().collect(on=local_spark) == [{"n": 0}]
    joined = some.join(none, on="id", how="left").rows().collect(on=local_spark)
    assert sorted(row["id"] for row in joined) == [0, 1, 2]
    assert {tuple(row) for row in joined} == {("id", "s")}


def test_a_datetime_without_a_zone_is_one_of_utc() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    rows = RowBatches(schema, "out", "writes rows", naive_is_utc=True)
    noon = datetime(2020, 1, 1, 12)
    assert rows.batch_of([noon]).column(0)[0].as_py() == noon.replace(tzinfo=UTC)
