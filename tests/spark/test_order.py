"""A task that Spark runs again sends the same items to each member. Otherwise items would be lost
or duplicated."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, Pipeline, between, from_, traverse
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext
from pyrite.engine.member import RunContext
from pyrite.exchange.packing import items_of
from pyrite.pace import Pace
from pyrite.processors.steps import WriteStep
from pyrite.spark.packets import REPORT
from tests.spark.line import Rows, run_task, works_of

MEMBERS = 3


def spread_after_an_exchange() -> DAG:
    """A DAG whose second stage sends items of an exchange and of a source round-robin over the next
    exchange."""
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(2000)))
    groups = dag.vertex(
        "groups", p.group_and_collect(lambda n: n % 97, list, lambda values, n: values.append(n))
    )
    more, merged = dag.vertex("more", p.read_items(range(5000))), dag.vertex("merged", p.map(str))
    dag.edge(between(numbers, groups).distributed().partitioned(key=lambda n: n % 97))
    dag.edge(from_(groups).to(merged, 0)).edge(from_(more).to(merged, 1))
    return dag.edge(between(merged, dag.vertex("sink", p.write_list("out"))).distributed())


def sent(rows: Rows) -> dict[int, list[Any]]:
    """The items that are sent to each member over the edges, in any order."""
    return {
        member: sorted(
            item
            for row in rows
            if row["member"] == member and row["edge"] >= 0
            for item in items_of(row["items"])
        )
        for member in range(MEMBERS)
    }


@pytest.fixture
def unsteady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pace change at random, as if some calls were slow and others fast."""
    chance = random.Random(1)
    monkeypatch.setattr(
        Pace, "took", lambda self, count, seconds: setattr(self, "limit", chance.randrange(1, 50))
    )


@pytest.mark.usefixtures("unsteady")
def test_what_is_spread_in_turn_does_not_depend_on_the_order_of_arrival_nor_on_time() -> None:
    first, second, _ = works_of(spread_after_an_exchange(), MEMBERS)
    arrived = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    again = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    assert len([row for row in arrived if row["edge"] >= 0]) > 20
    expected = [sent(run_task(second, member, arrived)) for member in range(MEMBERS)]
    chance = random.Random(2)
    for rows in (arrived, again):
        shuffled = [
            run_task(second, m, rows, lambda rows: chance.sample(rows, len(rows)))
            for m in range(MEMBERS)
        ]
        assert [sent(made) for made in shuffled] == expected
    assert all(len(items) > 500 for made in expected for items in made.values())


def spread_after_a_join() -> DAG:
    pipe = Pipeline()
    some, more = pipe.read_from(range(2000)), pipe.read_from(range(5000))
    pairs = some.join(more, left=lambda n: n % 97, right=lambda n: n % 1000, how="full")
    pairs.map(str).rebalance().write_to(p.write_list("out"))
    return pipe.to_dag()


@pytest.mark.usefixtures("unsteady")
@pytest.mark.parametrize("make", [spread_after_an_exchange, spread_after_a_join])
def test_a_task_that_is_run_again_makes_the_same_rows(make: Callable[[], DAG]) -> None:
    """Spark compares the rows. If they differ, it runs all later stages again, or fails the job."""
    first, second, _ = works_of(make(), MEMBERS)
    arrived = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    assert [row for member in range(MEMBERS) for row in run_task(first, member, [])] == arrived
    assert run_task(second, 0, arrived, lambda rows: rows[::-1]) == run_task(second, 0, arrived)


class Counting(AbstractProcessor):
    """A source that emits cooperatively."""

    def __init__(self) -> None:
        self._numbers = traverse(range(3000))

    def complete(self) -> bool:
        return self.emit_cooperatively(self._numbers)


def test_sources_of_the_users_emit_in_the_same_order_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dag = DAG()
    merged, sink = dag.vertex("merged", p.map(str)), dag.vertex("sink", p.write_list("out"))
    for ordinal in range(2):
        source = dag.vertex(f"source-{ordinal}", Counting)
        dag.edge(from_(source).to(merged, ordinal))
    first, _ = works_of(dag.edge(between(merged, sink).distributed()), 2)
    expected = run_task(first, 0, [])
    chance, now = random.Random(1), itertools.count()
    monkeypatch.setattr(
        "pyrite.processor.perf_counter", lambda: next(now) if chance.random() < 0.5 else 0.0
    )
    assert run_task(first, 0, []) == expected


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_task_that_writes_files_before_the_last_stage_reports_the_same_when_it_is_run_again(
    tmp_path: Path, format: str
) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([{"n": n} for n in range(3000)] + [{"n": 0.5}]))
    sink = p.write_files(tmp_path, format=format)
    dag.edge(from_(source, 0).to(dag.vertex("files", sink)))
    last = dag.vertex("last", p.write_list("out"))
    dag.edge(from_(source, 1).to(last).distributed())
    first, _ = works_of(dag, 2)
    context = MetaSupplierContext(
        **RunContext(
            job_name="j",
            job_id="j",
            execution_id="e",
            member_count=2,
            collections=MemoryCollections(),
        ).fields("files", 1)
    )
    assert isinstance(sink.step, WriteStep)
    commit = sink.step.begin(context)
    made = [run_task(first, 0, [], attempt=attempt) for attempt in ("7", "8")]
    assert made[0] == made[1]
    other = run_task(first, 1, [], attempt="9")
    reports = [
        report
        for rows in (made[0], other)
        for row in rows
        if row["edge"] == REPORT
        for report in pickle.loads(row["items"]).reports["files"]
    ]
    commit.commit(reports)
    commit.finish()
    assert sorted(path.name for path in tmp_path.glob("part-*")) == [
        f"part-0000{index}.{format}" for index in range(2)
    ]


def test_the_last_stage_need_not_be_put_in_order() -> None:
    *others, last = works_of(spread_after_an_exchange(), MEMBERS)
    assert all(work.section.sort_columns[-2:] == ("sender", "sequence") for work in others)
    assert last.section.sort_columns == ()
