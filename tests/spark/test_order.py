"""A task that Spark runs again sends the same items to each member. Otherwise items would be lost
or duplicated."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from pyrite import DAG, between, from_
from pyrite import processors as p
from pyrite.pace import Pace
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
            for item in pickle.loads(row["items"])
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


@pytest.mark.usefixtures("unsteady")
def test_a_task_that_is_run_again_makes_the_same_rows() -> None:
    """Spark compares the rows. If they differ, it runs all later stages again, or fails the job."""
    first, second, _ = works_of(spread_after_an_exchange(), MEMBERS)
    arrived = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    assert [row for member in range(MEMBERS) for row in run_task(first, member, [])] == arrived
    assert run_task(second, 0, arrived, lambda rows: rows[::-1]) == run_task(second, 0, arrived)


def test_the_last_stage_need_not_be_put_in_order() -> None:
    *others, last = works_of(spread_after_an_exchange(), MEMBERS)
    assert all(work.stage.sort_columns[-2:] == ("sender", "sequence") for work in others)
    assert last.stage.sort_columns == ()
