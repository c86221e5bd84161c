"""DataFrames as sources and sinks of normal jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, InvalidDAG, JobConfig, JobFailed, between, from_
from pyrite import processors as p


def test_a_dataframe_is_a_source_and_a_sink(pyr: Instance, tmp_path: Path) -> None:
    spark = pyr.spark()
    df = spark.range(0, 1000, 1, 3).selectExpr("id", "concat('name ', id % 10) as name")
    dag = DAG()
    rows = dag.vertex("rows", p.read_spark(df))
    count = dag.vertex(
        "count", p.group_and_accumulate(lambda row: row["name"], 0, lambda n, row: n + 1)
    )
    save = dag.vertex(
        "save",
        p.write_spark(lambda out: out.write.parquet(str(tmp_path / "out")), "name string, n long"),
    )
    dag.edge(between(rows, count).distributed().partitioned(key=lambda row: row["name"])).edge(
        between(count, save)
    )
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    found = {row.name: row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert found == {f"name {n}": 100 for n in range(10)}


def test_a_dataframe_read_first_holds_back_an_edge_with_a_later_priority(pyr: Instance) -> None:
    dag = DAG()
    rows = dag.vertex("rows", p.read_spark(pyr.spark().range(0, 30_000, 1, 2)))
    other = dag.vertex("other", p.read_items(range(30_000)))
    both = dag.vertex("both", p.map(lambda item: item if isinstance(item, int) else item["id"]))
    total = dag.vertex("total", p.accumulate(0, lambda a, n: a + n))
    dag.edge(from_(rows).to(both, 0)).edge(from_(other).to(both, 1).distributed().priority(1))
    dag.edge(between(both, total)).edge(between(total, dag.vertex("sink", p.write_list("out"))))
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert sum(pyr.list("out")) == 2 * sum(range(30_000))


def test_items_that_do_not_fit_the_schema_are_named(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([("a", 1), ("b",)]))
    dag.edge(
        between(
            source, dag.vertex("save", p.write_spark(lambda df: df.count(), "name string, n long"))
        )
    )
    with pytest.raises(
        JobFailed, match=r"writes rows with the columns name, n; .* got \('b',\)"
    ) as failed:
        pyr.new_job(dag, JobConfig(members=1)).execute().result(60)
    assert (failed.value.vertex, failed.value.item) == ("save", ("b",))


def test_a_writer_that_raises_fails_the_job_with_its_vertex(pyr: Instance) -> None:
    def save(df: Any) -> None:
        raise OSError("no such table")

    dag = DAG()
    dag.edge(
        between(
            dag.vertex("source", p.read_items([1])),
            dag.vertex("save", p.write_spark(save, "n long")),
        )
    )
    with pytest.raises(JobFailed, match="no such table") as failed:
        pyr.new_job(dag).execute().result(60)
    assert failed.value.vertex == "save"


def test_files_are_as_before_if_a_writer_raises(pyr: Instance, tmp_path: Path) -> None:
    def refuse(df: Any) -> None:
        raise OSError("the table is locked")

    dag = DAG()
    old, files = dag.vertex("old", p.read_items(["old"])), dag.vertex("o", p.write_files(tmp_path))
    pyr.new_light_job(dag.edge(between(old, files))).execute().result(10)
    dag = DAG()
    source, files = (
        dag.vertex("source", p.read_items([1])),
        dag.vertex("files", p.write_files(tmp_path)),
    )
    dag.edge(from_(source, 0).to(files)).edge(
        from_(source, 1).to(dag.vertex("table", p.write_spark(refuse, "n long")))
    )
    with pytest.raises(JobFailed, match="the table is locked"):
        pyr.new_job(dag, JobConfig(members=1)).execute().result(60)
    assert [(path.name, path.read_text()) for path in tmp_path.glob("[!.]*")] == [
        ("part-00000.txt", "old\n")
    ]


def test_a_light_job_refuses_dataframes_with_the_reason(pyr: Instance) -> None:
    dag = DAG()
    dag.vertex("rows", p.read_spark(pyr.spark().range(3)))
    with pytest.raises(
        JobFailed, match="vertex 'rows' reads a Spark DataFrame, but only a normal job can"
    ):
        pyr.new_light_job(dag).execute().result(10)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidDAG, match="needs a Spark DataFrame"):
        p.read_spark([1])  # type: ignore[call-overload]
    with pytest.raises(InvalidDAG, match="needs a schema"):
        p.write_spark(print, "")


def test_a_dag_is_a_lazy_dataframe(pyr: Instance, tmp_path: Path) -> None:
    def note(n: int) -> int:
        (tmp_path / "ran").touch()
        return n

    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(100)))
    noted = dag.vertex("noted", p.map(note))
    count = dag.vertex("count", p.group_and_accumulate(lambda n: n % 7, 0, lambda a, n: a + 1))
    dag.edge(between(numbers, noted)).edge(
        between(noted, count).distributed().partitioned(key=lambda n: n % 7)
    )
    df = dag.to_dataframe(pyr.spark(), "rest long, n long")
    assert not (tmp_path / "ran").exists()
    assert {row.rest: row.n for row in df.where("rest > 0").collect()} == {
        r: len(range(r, 100, 7)) for r in range(1, 7)
    }
    assert sorted(row.item for row in dag.to_dataframe(pyr.spark()).collect())[0] == "[0, 15]"


def test_a_dag_with_no_single_end_is_no_dataframe(pyr: Instance) -> None:
    dag = DAG()
    dag.edge(between(dag.vertex("a", p.read_items([1])), dag.vertex("b", p.write_list("out"))))
    with pytest.raises(InvalidDAG, match="must have exactly one vertex without outbound edges"):
        dag.to_dataframe(pyr.spark())


def test_a_dag_as_a_dataframe_may_be_coalesced_and_united(pyr: Instance) -> None:
    spark = pyr.spark()
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(100)))
    dag.edge(between(numbers, dag.vertex("same", p.noop())).distributed().partitioned())
    df = dag.to_dataframe(spark, "n long")
    assert sorted(row.n for row in df.coalesce(1).collect()) == list(range(100))
    assert sorted(row.id for row in spark.range(3).union(df).collect()) == sorted(
        [0, 1, 2, *range(100)]
    )
    other = DAG()
    other.edge(
        between(other.vertex("rows", p.read_spark(df)), other.vertex("sink", p.write_list("out")))
    )
    pyr.new_job(other, JobConfig(members=3)).execute().result(60)
    assert sorted(row["n"] for row in pyr.list("out")) == list(range(100))


def test_a_dataframe_and_iterators_are_sources_of_a_dataframe_and_named_collections_are_not(
    pyr: Instance,
) -> None:
    spark = pyr.spark()
    for source in (p.read_spark(spark.range(5)), p.read_items({"id": n} for n in range(5))):
        dag = DAG()
        dag.vertex("source", source)
        assert sorted(row.id for row in dag.to_dataframe(spark, "id long").collect()) == [
            0,
            1,
            2,
            3,
            4,
        ]
    dag = DAG()
    dag.vertex("source", p.read_list("l"))
    with pytest.raises(InvalidDAG, match="vertex 'source' reads a named collection"):
        dag.to_dataframe(spark)


def test_timestamps_and_maps_travel_both_ways(pyr: Instance) -> None:
    import datetime

    noon = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
    saved: list[Any] = []
    dag = DAG()
    source = dag.vertex("source", p.read_items([(noon, {"a": 1})]))
    save = p.write_spark(
        lambda df: saved.extend(df.selectExpr("unix_timestamp(t) as t", "m").collect()),
        "t timestamp, m map<string, int>",
    )
    dag.edge(between(source, dag.vertex("save", save)))
    pyr.new_job(dag).execute().result(60)
    assert [(row.t, row.m) for row in saved] == [(int(noon.timestamp()), {"a": 1})]
