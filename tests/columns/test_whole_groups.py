"""Two halves of a grouping that run in one processor."""

from __future__ import annotations

import pyarrow as pa

from pyrite import DAG, Instance, between, instance
from pyrite import processors as p
from pyrite.processors.columns.grouping import GroupBatches
from pyrite.processors.columns.steps import BatchStep
from pyrite.processors.columns.whole_groups import PassOn, with_whole_groups

AGGREGATES = {"total": ("price", "sum"), "mean": ("price", "mean")}


def half(by: str = "shop", *, partial: bool = False, final: bool = False) -> BatchStep:
    step = p.group_batches([by], AGGREGATES, partial=partial, final=final).step
    assert isinstance(step, BatchStep)
    return step


def test_the_first_half_groups_all_and_the_second_passes_on() -> None:
    first, second = with_whole_groups([half(partial=True), half(final=True)])
    assert isinstance(first, GroupBatches)
    assert first.spec == half().spec  # type: ignore[attr-defined]
    assert isinstance(second, PassOn)


def test_halves_of_different_groupings_stay_as_they_are() -> None:
    steps = [half("shop", partial=True), half("town", final=True)]
    assert with_whole_groups(steps) == steps


def test_complete_groupings_stay_as_they_are() -> None:
    steps = [half(), half()]
    assert with_whole_groups(steps) == steps


def test_a_light_job_gives_the_same_as_a_complete_grouping(pyr: Instance) -> None:
    batch = pa.record_batch({"shop": ["a", "b", None, "a"], "price": [1, 2, 3, 5]})
    dag = DAG()
    source = dag.vertex("source", p.read_items([batch, batch]))
    partial = dag.vertex("partial", p.group_batches(["shop"], AGGREGATES, partial=True))
    final = dag.vertex("final", p.group_batches(["shop"], AGGREGATES, final=True))
    dag.edge(between(source, partial))
    dag.edge(between(partial, final).distributed().partitioned(columns=["shop"], nulls=True))
    dag.edge(between(final, dag.vertex("list", p.write_list("totals"))))
    pyr.new_light_job(dag).execute().result()
    rows = [row for batch in pyr.list("totals") for row in batch.to_pylist()]
    assert sorted(rows, key=str) == [
        {"shop": "a", "total": 12, "mean": 3.0},
        {"shop": "b", "total": 4, "mean": 2.0},
        {"shop": None, "total": 6, "mean": 3.0},
    ]


def test_a_grouping_of_all_rows_by_several_processors_gives_one_row() -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([pa.record_batch({"price": [1, 2]})]))
    partial = dag.vertex("partial", p.group_batches([], AGGREGATES, partial=True))
    final = dag.vertex("final", p.group_batches([], AGGREGATES, final=True))
    dag.edge(between(source, partial)).edge(between(partial, final).distributed().all_to_one())
    dag.edge(between(final, dag.vertex("list", p.write_list("totals"))))
    with instance(cooperative_threads=2) as pyr:
        pyr.new_light_job(dag).execute().result()
        rows = [row for batch in pyr.list("totals") for row in batch.to_pylist()]
    assert rows == [{"total": 3, "mean": 1.5}]
