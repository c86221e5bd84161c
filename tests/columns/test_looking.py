"""preview, verify and explain of pipelines with batches look at rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyrite import Pipeline
from pyrite import processors as p
from pyrite.pipeline import BatchStage


@pytest.fixture
def stage(tmp_path: Path) -> BatchStage:
    table = pa.table({"k": [n % 7 for n in range(300)], "v": list(range(300))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    return Pipeline().read_from(p.read_batches(tmp_path / "t.parquet"))


def test_a_preview_reads_and_counts_rows(stage: BatchStage) -> None:
    found = stage.map_batches(lambda batch: batch.slice(1)).preview(10)
    assert [(each.name, each.received, each.emitted) for each in found] == [
        ("read_batches", 0, 10),
        ("map_batches", 10, 9),
    ]
    assert found["map_batches"].items[0] == {"k": 1, "v": 1}
    assert found["map_batches"].types == "dict[str, int]"


def test_a_grouping_does_not_depend_on_order_or_parallelism(stage: BatchStage) -> None:
    groups = stage.group_by("k").aggregate(total=("v", "sum"), different=("v", "count_distinct"))
    verified = groups.verify(100)
    assert verified.ok
    assert not verified.notes


def test_a_function_that_depends_on_the_batch_is_found(stage: BatchStage) -> None:
    def share(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col("v") / pl.col("v").sum())

    found = stage.map_batches(share, "polars", name="share").verify(100)
    assert found.vertices == ("share",)


def test_which_value_is_first_is_a_note(stage: BatchStage) -> None:
    found = stage.group_by("k").aggregate(one=("v", "first")).verify(100)
    assert found.ok
    assert "depends on the order of the rows" in str(found.notes[0].why)


def test_an_explanation_says_what_is_fused_and_combined(stage: BatchStage) -> None:
    stage.group_by("k").aggregate(n=("v", "count")).write_to(p.noop())
    lines: list[Any] = stage.pipeline.explain().splitlines()
    assert "1. read_batches + aggregate-combine: one loop" in lines
    assert "   combines before the exchange" in lines
    assert "   exchange from aggregate-combine: distributed partitioned by k" in lines
