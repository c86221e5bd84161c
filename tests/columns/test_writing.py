"""write_batches: the rows of all batches are in the files, with one schema; partitions, sizes, and
what is said about batches that do not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, Instance, InvalidDAG, JobFailed, Pipeline, between
from pyrite import processors as p
from pyrite.processors.columns.sinks.row_groups import RowGroups
from tests.columns.test_reading import table
from tests.processors.files.jobs import visible

PEOPLE = pa.table({"id": range(5000), "name": [f"n{i % 7}" for i in range(5000)]})


def run(items: Sequence[Any], folder: Path, **options: Any) -> None:
    pipe = Pipeline()
    pipe.read_from(items).write_to(p.write_batches(folder, **options))
    pipe.run()


def fails(items: Sequence[Any], folder: Path, **options: Any) -> str:
    with pytest.raises(JobFailed) as failed:
        run(items, folder, **options)
    assert not folder.exists()
    return str(failed.value)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_what_is_written_is_read_back(tmp_path: Path, format: str, compression: str | None) -> None:
    run(PEOPLE.to_batches(700), tmp_path / "out", format=format, compression=compression)
    read = table(tmp_path / "out" / "part-*", format=format)
    assert read.sort_by("id").equals(PEOPLE)


def test_row_groups_do_not_depend_on_the_batches(tmp_path: Path) -> None:
    for rows in (1, 700, 5000):
        run(PEOPLE.to_batches(rows), tmp_path / str(rows), single_file=True)
    first, *others = ((tmp_path / str(n) / "part-00000.parquet") for n in (1, 700, 5000))
    assert pq.ParquetFile(first).num_row_groups == 1
    assert all(other.read_bytes() == first.read_bytes() for other in others)


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 40))
def test_groups_have_one_size_and_all_rows_in_order(sizes: list[int], rows: int) -> None:
    whole = pa.table({"n": pa.array(range(sum(sizes)), pa.int64())})
    groups, made, start = RowGroups(rows=rows), list[pa.Table](), 0
    for size in sizes:
        batch = pa.RecordBatch.from_pydict({"n": range(start, start + size)}, whole.schema)
        made += groups.add(batch)
        start += size
    assert all(group.num_rows == rows for group in made)
    rest = groups.rest()
    assert (rest is None) == (not sizes)
    assert pa.concat_tables([*made, *([rest] if sizes else [])] or [whole]).equals(whole)


def test_partitions_are_folders(tmp_path: Path) -> None:
    rows = pa.table({"c": ["DE", None, "DE"], "d": [date(2024, 1, 1)] * 3, "n": [1, 2, 3]})
    run(rows.to_batches(), tmp_path, partition_by=["c", "d"], single_file=True)
    assert visible(tmp_path) == ["c=DE", "c=__HIVE_DEFAULT_PARTITION__"]
    file = tmp_path / "c=DE" / "d=2024-01-01" / "part-00000.parquet"
    assert pq.ParquetFile(file).read().to_pylist() == [{"n": 1}, {"n": 3}]
    read = table(tmp_path / "*" / "*" / "*").sort_by("n").to_pylist()
    assert read[1] == {"n": 2, "c": None, "d": "2024-01-01"}
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 3


def test_many_partitions_have_all_rows(tmp_path: Path) -> None:
    run(PEOPLE.slice(0, 150).to_batches(40), tmp_path, partition_by="id")
    assert len(visible(tmp_path)) == 150
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 150


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_have_about_the_target_size(tmp_path: Path, format: str) -> None:
    run(PEOPLE.to_batches(), tmp_path / "out", format=format, target_size=10_000)
    assert len(visible(tmp_path / "out")) > 2
    assert table(tmp_path / "out" / "*", format=format).sort_by("id").equals(PEOPLE)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_processors_without_batches_write_files_that_fit(
    pyr: Instance, tmp_path: Path, format: Any
) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([PEOPLE.to_batches()[0]]), local_parallelism=1)
    write = dag.vertex("write", p.write_batches(tmp_path, format), local_parallelism=3)
    dag.edge(between(read, write))
    pyr.new_light_job(dag).execute().result(20)
    assert len(visible(tmp_path)) == 3
    assert table(tmp_path / "*", format=format).equals(PEOPLE)
    if format == "parquet":
        assert {str(pq.read_schema(file)) for file in tmp_path.glob("part*")} == {
            str(PEOPLE.schema)
        }


def test_nothing_but_an_empty_batch_is_a_file_with_its_columns(tmp_path: Path) -> None:
    run(
        [PEOPLE.slice(0, 0).to_batches() or pa.RecordBatch.from_pylist([], PEOPLE.schema)], tmp_path
    )
    assert pq.read_table(tmp_path).schema == PEOPLE.schema


def test_files_without_batches_have_the_columns_of_a_schema(tmp_path: Path) -> None:
    run([], tmp_path / "out", schema={"id": "int64", "name": "string"})
    assert table(tmp_path / "out" / "part-*").column_names == ["id", "name"]


def test_every_type_is_written_to_parquet(tmp_path: Path) -> None:
    row = {
        "d": Decimal("1.25"),
        "t": datetime(2024, 2, 29, tzinfo=UTC),
        "l": [1, None],
        "s": {"a": {"b": "c"}},
        "b": b"\xff",
    }
    batch = pa.RecordBatch.from_pylist([row]).append_column(
        "c", pa.array(["x"]).dictionary_encode()
    )
    run([batch], tmp_path)
    assert table(tmp_path / "*.parquet").to_batches()[0].equals(batch)


def test_dictionaries_that_differ_are_one_column(tmp_path: Path) -> None:
    some = [pa.record_batch({"c": pa.array(w).dictionary_encode()}) for w in (["a"], ["b", "a"])]
    run(some, tmp_path, single_file=True)
    assert table(tmp_path / "*.parquet")["c"].to_pylist() == ["a", "b", "a"]


def test_a_schema_casts_what_fits(tmp_path: Path) -> None:
    some = [pa.record_batch({"n": [1], "s": ["a"]}), pa.record_batch({"s": ["b"], "n": [2.0]})]
    run(some, tmp_path / "out", schema={"s": "large_string", "n": float}, single_file=True)
    assert table(tmp_path / "out" / "*")["n"].to_pylist() == [1.0, 2.0]
    text = fails([pa.record_batch({"n": ["x"]})], tmp_path / "no", schema={"n": int})
    assert "column 'n' of a batch is string, and cannot be written as int64: " in text


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"n": ["x"]}, "column 'n' of a batch is string, and int64 in the batches before; make "),
        ({"m": [1]}, "a batch has no column 'n', and the columns of the batches before are n; "),
        (
            {"n": [1], "m": [1]},
            "a batch has a column 'm', and the columns of the batches before are n;",
        ),
    ],
)
def test_batches_that_differ_are_explained(tmp_path: Path, other: Any, why: str) -> None:
    some = [pa.record_batch({"n": [1]}), pa.record_batch(other)]
    text = fails(some, tmp_path / "out", single_file=True)
    assert f"vertex 'write_batches' writes batches of one schema: {why}" in text


def test_processors_whose_batches_differ_are_explained(pyr: Instance, tmp_path: Path) -> None:
    dag = DAG()
    some = [pa.record_batch({"n": [1]}), pa.record_batch({"n": ["x"]})]
    read = dag.vertex("read", p.read_items(some), local_parallelism=2)
    write = dag.vertex("write", p.write_batches(tmp_path / "out"), local_parallelism=2)
    dag.edge(between(read, write).isolated())
    with pytest.raises(JobFailed, match=r"column 'n' is (int64|string) in some and"):
        pyr.new_light_job(dag).execute().result(20)
    assert not (tmp_path / "out").exists()


def test_items_that_are_no_batches_are_refused(tmp_path: Path) -> None:
    text = fails([{"n": 1}], tmp_path / "out")
    assert (
        "vertex 'write_batches' works on batches of rows (pyarrow.RecordBatch), but it got" in text
    )


@pytest.mark.parametrize(
    ("format", "column", "why"),
    [
        ("csv", pa.array([[1]]), "cannot write column 'v' as CSV, because it is list<item: int64>"),
        ("json", pa.array([b"a"]), "cannot write rows as JSON: JSON has no bytes; cast the column"),
    ],
)
def test_types_that_a_format_cannot_hold_are_named(
    tmp_path: Path, format: str, column: pa.Array, why: str
) -> None:
    assert why in fails([pa.record_batch({"v": column})], tmp_path / "out", format=format)


def test_partitions_need_their_column_and_another(tmp_path: Path) -> None:
    some = [pa.record_batch({"n": [1]})]
    text = fails(some, tmp_path / "out", partition_by="m")
    assert "partitions by column 'm', which a batch lacks; its columns are n" in text
    text = fails(some, tmp_path / "out", partition_by="n")
    assert "partitions by all columns that a batch has" in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"format": "orc"}, "format of write_batches() must be one of parquet, csv, json"),
        ({"compression": "lzma"}, "compression of write_batches() must be one of snappy"),
        ({"partition_by": len}, "partition_by of write_batches() must be the name of a column"),
        ({"target_size": 0}, "target_size of write_batches() must be a positive number"),
        ({"schema": "n long"}, "write_batches() needs a schema"),
    ],
)
def test_options_are_checked_at_once(options: Any, why: str) -> None:
    with pytest.raises(InvalidDAG, match=re.escape(why)):
        p.write_batches("x", **options)
