"""Stages of batches: forks, unions, joins and sorts of pipelines, and wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyrite import InvalidDAG, Pipeline
from pyrite import processors as p
from pyrite.pipeline import BatchStage

NEVER = pc.field("k") > 100
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def stage_of(pipe: Pipeline, *rows: tuple[Any, ...]) -> BatchStage:
    return pipe.read_from(rows).batches(SCHEMA)


def test_a_stage_that_is_used_twice_is_computed_once() -> None:
    calls: list[int] = []

    def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        return batch

    stage = stage_of(Pipeline(), (1, "a"), (1, "b"), (2, "c")).map_batches(counted)
    sums = stage.group_by("k").aggregate(n=("v", "count"))
    joined = stage.join(sums, on="k").sort("v").rows().collect()
    assert joined == [
        {"k": 1, "v": "a", "n": 2},
        {"k": 1, "v": "b", "n": 2},
        {"k": 2, "v": "c", "n": 1},
    ]
    assert calls == [3]


def test_a_stage_joins_itself() -> None:
    stage = stage_of(Pipeline(), (1, "a"), (2, "b"), (None, "c"))
    assert stage.join(stage, on="k").sort("k").rows().collect() == [
        {"k": 1, "v": "a", "v_right": "a"},
        {"k": 2, "v": "b", "v_right": "b"},
    ]


@pytest.mark.parametrize(
    ("how", "keys"),
    [
        ("inner", [2]),
        ("left", [1, 2, None]),
        ("right", [2, None, None]),
        ("full", [1, 2, None, None, None]),
        ("semi", [2]),
        ("anti", [1, None]),
    ],
)
def test_all_kinds_of_joins(how: Any, keys: list[Any]) -> None:
    pipe = Pipeline()
    left = stage_of(pipe, (1, "a"), (2, "b"), (None, "c"))
    right = stage_of(pipe, (2, "x"), (3, "y"), (None, "z"))
    found = left.join(right, on="k", how=how).rows().collect()
    lefts = [row["k"] if row["v"] is not None else None for row in found]
    assert sorted(lefts, key=str) == sorted(keys, key=str)


@pytest.mark.parametrize("how", ["left", "right", "full"])
def test_rows_without_a_match_have_the_columns_of_both_sides(how: Any) -> None:
    pipe = Pipeline()
    many = stage_of(pipe, *((n, str(n)) for n in range(50)))
    few = stage_of(pipe, (1, "x"))
    sides = (few, many) if how == "right" else (many, few)
    joined = sides[0].join(sides[1], on="k", how=how, parallelism=4)
    found = joined.sort("k").rows().collect()
    assert len(found) == 50
    assert {tuple(row) for row in found} == {("k", "v", "v_right")}


@pytest.mark.parametrize("empty", ["no items", "all filtered", "no rows in a file"])
def test_a_side_without_rows_has_columns(empty: str, tmp_path: Path) -> None:
    pipe = Pipeline()
    left = stage_of(pipe, (1, "a"))
    if empty == "no rows in a file":
        pq.write_table(SCHEMA.empty_table(), tmp_path / "empty.parquet")
        right = pipe.read_from(p.read_batches(tmp_path / "empty.parquet"))
    else:
        right = stage_of(pipe) if empty == "no items" else stage_of(pipe, (1, "b")).filter(NEVER)
    joined = left.join(right, on="k", how="left").rows().collect()
    assert joined == [{"k": 1, "v": "a", "v_right": None}]


def test_a_union_has_the_rows_of_all() -> None:
    pipe = Pipeline()
    one, two, three = (stage_of(pipe, (n, str(n))) for n in range(3))
    groups = one.union(two, three, one).group_by().aggregate(n=("k", "count"), total=("k", "sum"))
    assert groups.rows().collect() == [{"n": 4, "total": 3}]


def test_rows_and_batches_again_are_the_same() -> None:
    stage = stage_of(Pipeline(), (1, "a"), (None, None))
    again = stage.rows().filter(lambda row: row["k"]).batches(SCHEMA).rows().collect()
    assert again == [{"k": 1, "v": "a"}]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (
            lambda s: s.join(s.rows(), on="k"),
            r"needs another stage of batches.*\.batches\(schema\)",
        ),
        (lambda s: s.union([1]), r"needs another stage of batches; got \[1\]"),
        (lambda s: s.join(s, on="k", left_on="k"), "needs either on="),
        (lambda s: s.join(s), "needs either on="),
        (lambda s: s.join(s, on="k", how="outer"), "outer"),
        (lambda s: s.join(s, on="k", how="full", broadcast=True), "broadcast=True and how='full'"),
        (lambda s: s.join(s, left_on=["k"], right_on=["k", "v"]), "right_on"),
        (lambda s: s.select(), "needs the names of columns"),
        (lambda s: s.select("k", "k"), "names a column twice"),
        (lambda s: s.sort(), "by of sort"),
        (lambda s: s.sort("k", descending=[True, False]), "descending"),
        (lambda s: s.group_by("k").aggregate(), "needs at least one aggregate"),
        (lambda s: s.write_to(p.read_batches("x")), "needs a sink"),
    ],
)
def test_wrong_arguments_are_refused_with_the_line(
    use: Callable[[BatchStage], Any], says: str
) -> None:
    with pytest.raises(InvalidDAG, match=says) as raised:
        use(stage_of(Pipeline(), (1, "a")))
    assert "test_stages.py line" in str(raised.value)


@pytest.mark.parametrize("empty", ["inner", "semi", "sort"])
def test_what_comes_behind_a_join_or_sort_without_rows_knows_the_columns(empty: Any) -> None:
    pipe = Pipeline()
    one, other = stage_of(pipe, (1, "a")), stage_of(pipe, (2, "b"))
    if empty == "sort":
        nothing = other.filter(NEVER).sort("k")
    else:
        nothing = one.join(other, on="k", how=empty).select("k", "v")
    counts = nothing.group_by().aggregate(n=("v", "count"))
    assert counts.rows().collect() == [{"n": 0}]
    joined = one.join(nothing, on="k", how="left").rows().collect()
    assert joined == [{"k": 1, "v": "a", "v_right": None}]
