"""Random tables have the same groups and joins by batches, by items and in Polars, in every
mode."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pyrite import DAG, Pipeline, agg, between, from_, instance
from pyrite import processors as p
from tests.columns.tables import (
    AGGREGATES,
    Row,
    as_set,
    batches_of,
    comparable,
    grouped,
    joined,
    tables,
)
from tests.pipeline.modes import Mode, mode

__all__ = ["mode"]

FEW = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""In modes that take tenths of a second for a job. Light jobs are tried more often below."""


def grouped_by_polars(schema: pa.Schema, rows: list[Row], by: list[str]) -> list[Row]:
    i, x, s = pl.col("i"), pl.col("x"), pl.col("s")
    groups = pl.DataFrame(pa.Table.from_pylist(rows, schema)).group_by(by)
    return groups.agg(
        pl.when(i.count() > 0).then(i.sum()).alias("sum"),
        x.mean().alias("mean"),
        s.min().alias("least"),
        i.max().alias("most"),
        s.count().alias("n"),
        s.drop_nulls().n_unique().alias("different"),
    ).to_dicts()


def joined_by_polars(
    schema: pa.Schema, left: list[Row], right: list[Row], on: list[str]
) -> list[Row]:
    one, two = (pl.DataFrame(pa.Table.from_pylist(each, schema)) for each in (left, right))
    return one.join(two, on=on).to_dicts()


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


@FEW
@given(table=tables())
def test_groups_are_the_same_by_batches_and_by_items_in_every_mode(
    mode: Mode, table: tuple[pa.Schema, list[Row]]
) -> None:
    schema, rows = table
    pipe = Pipeline()
    source = pipe.read_from(rows)
    batches = source.batches(schema)
    batches.group_by("k", "l").aggregate(AGGREGATES).rows().write_to(p.write_list("two"))
    batches.group_by("k").aggregate(AGGREGATES).rows().write_to(p.write_list("one"))
    items = source.group_by(lambda row: comparable(row["k"])).aggregate(agg.to_list())
    items.map(lambda pair: grouped(pair[1], ["k"])[0]).write_to(p.write_list("items"))
    one, two, by_items = mode.listed(pipe, "one", "two", "items")
    assert as_set(one) == as_set(by_items) == as_set(grouped_by_polars(schema, rows, ["k"]))
    assert as_set(two) == as_set(grouped_by_polars(schema, rows, ["k", "l"]))
    assert as_set(one) == as_set(grouped(rows, ["k"]))


@FEW
@given(table=tables())
def test_joins_are_the_same_by_batches_and_by_items_in_every_mode(
    mode: Mode, table: tuple[pa.Schema, list[Row]]
) -> None:
    schema, rows = table
    others = rows[::3]
    pipe = Pipeline()
    one, two = pipe.read_from(rows), pipe.read_from(others)
    batches, held = one.batches(schema), two.batches(schema)
    batches.join(held, on="k").rows().write_to(p.write_list("by k"))
    batches.join(held, on=["k", "l"], broadcast=True).rows().write_to(p.write_list("by both"))
    pairs = one.join(two, left=lambda r: r["k"], right=lambda r: r["k"])
    pairs.map(lambda pair: joined([pair[0]], [pair[1]], ["k"])[0]).write_to(p.write_list("items"))
    by_k, by_both, items = mode.listed(pipe, "by k", "by both", "items")
    assert as_set(by_k) == as_set(items) == as_set(joined_by_polars(schema, rows, others, ["k"]))
    assert as_set(by_both) == as_set(joined_by_polars(schema, rows, others, ["k", "l"]))
    assert as_set(by_k) == as_set(joined(rows, others, ["k"]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("kernels", ["arrow", "polars"])
@given(table=tables())
def test_a_light_dag_groups_as_polars_does(
    kernels: Any, table: tuple[pa.Schema, list[Row]]
) -> None:
    schema, rows = table
    dag = DAG()
    read = dag.vertex("read", p.read_items(batches_of(schema, rows, 7)))
    half = dag.vertex("half", p.group_batches(["k"], AGGREGATES, partial=True, kernels=kernels))
    whole = dag.vertex("whole", p.group_batches(["k"], AGGREGATES, final=True, kernels=kernels))
    out = dag.vertex("out", p.rows())
    listed = dag.vertex("listed", p.write_list("groups"))
    dag.edge(between(read, half))
    dag.edge(between(half, whole).distributed().partitioned(columns=["k"], nulls=True))
    dag.edge(between(whole, out)).edge(between(out, listed))
    with instance(cooperative_threads=3) as pyr:
        pyr.new_light_job(dag).execute().result()
        found = list(pyr.list("groups"))
    assert as_set(found) == as_set(grouped_by_polars(schema, rows, ["k"]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("kernels", ["arrow", "polars"])
@given(table=tables())
def test_a_light_dag_joins_as_polars_does(kernels: Any, table: tuple[pa.Schema, list[Row]]) -> None:
    schema, rows = table
    others = rows[1::2]
    dag = DAG()
    left = dag.vertex("left", p.read_items(batches_of(schema, rows, 5)))
    right = dag.vertex("right", p.read_items(batches_of(schema, others, 3)))
    join = dag.vertex("join", p.join_batches(["k"], ["k"], kernels=kernels))
    out = dag.vertex("out", p.rows())
    listed = dag.vertex("listed", p.write_list("joined"))
    dag.edge(from_(right).to(join, 0).distributed().partitioned(columns=["k"], nulls=True))
    dag.edge(
        from_(left).to(join, 1).distributed().partitioned(columns=["k"], nulls=True).priority(1)
    )
    dag.edge(between(join, out)).edge(between(out, listed))
    with instance(cooperative_threads=3) as pyr:
        pyr.new_light_job(dag).execute().result()
        found = list(pyr.list("joined"))
    assert as_set(found) == as_set(joined_by_polars(schema, rows, others, ["k"]))
