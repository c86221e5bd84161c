"""Joins over several processors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import pyrite
from pyrite import DAG, between, from_
from pyrite import processors as p
from pyrite.columns.joining.spec import JoinHow

PEOPLE = pa.record_batch({"id": [1], "name": ["Ada"]})
VISITS = pa.record_batch(
    {"person": [0, 1, 2, 3, 4, 5], "day": ["Mo", "Tu", "We", "Th", "Fr", "Sa"]}
)


def rows_of(left: pa.RecordBatch, right: pa.RecordBatch, how: JoinHow) -> list[dict[str, Any]]:
    """The rows of a join over four processors, in a light job."""
    dag = DAG()
    rights = dag.vertex("right", p.read_items([right]), local_parallelism=1)
    lefts = dag.vertex("left", p.read_items([left]), local_parallelism=1)
    step = p.join_batches(left_on=["person"], right_on=["id"], how=how)
    join = dag.vertex("join", step, local_parallelism=4)
    rows, out = dag.vertex("rows", p.rows()), dag.vertex("out", p.write_list("joined"))
    dag.edge(from_(rights).to(join, 0).partitioned(columns=["id"]))
    dag.edge(from_(lefts).to(join, 1).partitioned(columns=["person"]).priority(1))
    dag.edge(between(join, rows)).edge(between(rows, out))
    with pyrite.instance() as pyr:
        pyr.new_light_job(dag).execute().result(timeout=60)
        return sorted(pyr.list("joined"), key=lambda row: str(row["person"]))


@pytest.mark.parametrize("right", [PEOPLE, PEOPLE.slice(0, 0)], ids=["one row", "no row"])
def test_processors_without_right_rows_give_the_right_columns_too(right: pa.RecordBatch) -> None:
    names = {row["id"]: row["name"] for row in right.to_pylist()}
    assert rows_of(VISITS, right, "left") == [
        {**row, "name": names.get(row["person"])} for row in VISITS.to_pylist()
    ]


def test_processors_without_left_rows_give_the_left_columns_too() -> None:
    people = pa.record_batch({"id": [4, 5, 6, 7, 8, 9], "name": list("abcdef")})
    assert rows_of(VISITS.slice(5, 1), people, "right") == [
        {"person": number, "day": "Sa" if number == 5 else None, "name": name}
        for number, name in zip(range(4, 10), "abcdef")
    ]
