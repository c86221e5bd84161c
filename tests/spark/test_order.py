"""A task that Spark runs again hands each member what it did before: else items were lost, or there twice, where a part was read already."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

from pyrite import DAG, between, from_
from pyrite import processors as p
from pyrite.pace import Pace
from tests.spark.line import Rows, run_task, works_of

MEMBERS = 3


def spread_after_an_exchange() -> DAG:
    """Items that arrive over one exchange, beside those of a source in the same stage, are spread in turn over the next."""
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(2000)))
    groups = dag.vertex("groups", p.group_and_collect(lambda n: n % 97, list, lambda values, n: values.append(n)))
    more, merged = dag.vertex("more", p.read_items(range(5000))), dag.vertex("merged", p.map(str))
    dag.edge(between(numbers, groups).distributed().partitioned(key=lambda n: n % 97))
    dag.edge(from_(groups).to(merged, 0)).edge(from_(more).to(merged, 1))
    return dag.edge(between(merged, dag.vertex("sink", p.write_list("out"))).distributed())


def sent(rows: Rows) -> dict[int, list[Any]]:
    """What goes to each member over the edges, in any order."""
    return {
        member: sorted(
            item for row in rows if row["member"] == member and row["edge"] >= 0 for item in pickle.loads(row["items"])
        )
        for member in range(MEMBERS)
    }


@pytest.fixture
def unsteady(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Some calls take long, others do not."""
    chance = random.Random(1)
    monkeypatch.setattr(Pace, "took", lambda self, count, seconds: setattr(self, "limit", chance.randrange(1, 50)))
    return None


@pytest.mark.usefixtures("unsteady")
def test_what_is_spread_in_turn_does_not_depend_on_the_order_of_arrival_nor_on_time() -> None:
    first, second, _ = works_of(spread_after_an_exchange(), MEMBERS)
    arrived = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    again = [row for member in range(MEMBERS) for row in run_task(first, member, [])]
    assert len([row for row in arrived if row["edge"] >= 0]) > 20
    expected = [sent(run_task(second, member, arrived)) for member in range(MEMBERS)]
    chance = random.Random(2)
    for rows in (arrived, again):
        shuffled = [run_task(second, m, rows, lambda rows: chance.sample(rows, len(rows))) for m in range(MEMBERS)]
        assert [sent(made) for made in shuffled] == expected
    assert all(len(items) > 500 for made in expected for items in made.values())


def test_only_stages_up_to_the_one_that_spreads_in_turn_what_arrived_are_put_in_order() -> None:
    assert [work.stage.in_order for work in works_of(spread_after_an_exchange(), MEMBERS)] == [True, True, False]
    dag = DAG()
    source, group = dag.vertex("a", p.read_items([1])), dag.vertex("b", p.group_and_accumulate(abs, 0, max))
    middle = dag.vertex("m", p.noop())
    dag.edge(between(source, middle).distributed()).edge(between(middle, group).distributed().partitioned(key=abs))
    assert not any(work.stage.in_order for work in works_of(dag, MEMBERS))
