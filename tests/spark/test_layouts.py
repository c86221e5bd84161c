"""Layouts of files on Spark and in durable jobs: each item is in exactly one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import DAG, Instance, JobConfig, between
from pyrite import processors as p

ROWS = [{"country": ["DE", "FR", "IT"][n % 3], "n": n} for n in range(3000)]


def as_rows(source: Path, sink: Any) -> DAG:
    """Reads typed rows with their paths, and writes the rows."""
    schema = {"country": str, "n": int}
    dag = DAG()
    read = dag.vertex("read", p.read_files(source, format="csv", schema=schema, with_path=True))
    row = dag.vertex("row", p.map(lambda pair: pair[1]))
    dag.edge(between(read, row).distributed())
    return dag.edge(between(row, dag.vertex("write", sink)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for part in range(4):
        lines = [f"{row['country']},{row['n']}" for row in ROWS[part::4]]
        (tmp_path / f"{part}.csv").write_text("\n".join(["country,n", *lines]))
    return tmp_path / "*.csv"


def test_spark_writes_partitions_that_it_reads(pyr: Instance, tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    sink = p.write_files(
        out, format="parquet", partition_by="country", target_size=500, compression="zstd"
    )
    for _ in range(2):  # the second job replaces what the first wrote
        pyr.new_job(as_rows(source, sink), JobConfig(members=2)).execute().result(120)
    rows = pyr.spark().read.parquet(str(out)).collect()
    assert sorted((row.country, row.n) for row in rows) == sorted(
        (row["country"], row["n"]) for row in ROWS
    )
    assert len(list(out.rglob("*.parquet"))) > 6


def test_spark_writes_one_file(pyr: Instance, tmp_path: Path, source: Path) -> None:
    sink = p.write_files(tmp_path / "out", format="csv", single_file="all.csv")
    pyr.new_job(as_rows(source, sink), JobConfig(members=2)).execute().result(120)
    header, *lines = (tmp_path / "out" / "all.csv").read_text().splitlines()
    assert header == "country,n"
    assert sorted(lines) == sorted(f"{row['country']},{row['n']}" for row in ROWS)


@pytest.mark.parametrize("layout", [{"partition_by": "country"}, {"single_file": True}], ids=str)
def test_a_durable_job_writes_a_layout(
    tmp_path: Path, source: Path, layout: dict[str, Any]
) -> None:
    sink = p.write_files(tmp_path / "out", format="jsonl", compression="gzip", **layout)
    back = DAG()
    read = back.vertex("read", p.read_files(tmp_path / "out" / "**" / "*.gz", format="jsonl"))
    back.edge(between(read, back.vertex("list", p.write_list("back"))))
    with pyrite.instance(durable=tmp_path / "place", peers=2) as pyr:
        job = pyr.new_durable_job(as_rows(source, sink), JobConfig(members=2))
        job.execute().result(60)
        pyr.new_durable_job(back).execute().result(60)
        rows = list(pyr.list("back"))
    assert sorted(row["n"] for row in rows) == list(range(len(ROWS)))
    assert all(row["country"] == ROWS[row["n"]]["country"] for row in rows)
