"""TPC-H queries by batches give the answers of DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from benchmarks.columns import as_pipelines, by_batches
from benchmarks.columns.tables import plain
from benchmarks.tpch.answers import answer
from benchmarks.tpch.tables import write_tables

from pyrite import DAG, Instance, Pipeline
from pyrite.columns.grouping import grouping
from pyrite.columns.grouping.spilling import Spill


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    write_tables(folder, orders=3000)
    for file in folder.glob("*/*.parquet"):
        pq.write_table(plain(pq.read_table(file)), file, row_group_size=1000)
    return folder


def answered(pyr: Instance, query: str, dag: DAG | Pipeline) -> list[tuple[Any, ...]]:
    pyr.new_light_job(dag).execute().result()
    return [tuple(row.values()) for batch in pyr.list(query) for row in batch.to_pylist()]


@pytest.mark.parametrize("query", by_batches.DAGS)
@pytest.mark.parametrize("made", [by_batches.DAGS, as_pipelines.PIPELINES], ids=["DAG", "pipeline"])
def test_a_query_by_batches_gives_the_answer_of_duckdb(
    pyr: Instance, query: str, made: Any, tables: Path
) -> None:
    rows = answered(pyr, query, made[query](tables))
    assert rows == [tuple(map(_close, row)) for row in answer(query, tables)]


def test_a_grouping_with_little_memory_finishes_by_spilling(
    pyr: Instance, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spills = []

    class Recorded(Spill):
        def __init__(self, *args: Any) -> None:
            spills.append(args)
            super().__init__(*args)

    monkeypatch.setattr(grouping, "Spill", Recorded)
    rows = answered(pyr, "q18", by_batches.q18(tables, memory=12_000))
    assert spills
    assert rows == [tuple(map(_close, row)) for row in answer("q18", tables)]


def _close(value: Any) -> Any:
    """The last digits of a sum of floats depend on its order."""
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
