"""What is shown of a job while it runs never falls, whoever dies, and is exact at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pyrite import DAG
from pyrite.durable.parts.tally import Metrics, Tallies, Tally, TaskShape, Told, so_far
from pyrite.durable.protocol.workflow import Part
from tests.durable.parts.bench import Bench, StopAt
from tests.durable.parts.test_deaths import Forgets, Keeps, counting, dag_of

PART = Part("job", "task", 0)


def items(count: int) -> Metrics:
    numbers = {
        **dict.fromkeys(("received", "emitted"), count),
        **dict.fromkeys(("skipped", "dead_letters", "queue_fill", "done"), 0),
        **dict.fromkeys(("held_bytes", "spilled_bytes"), 0),
        "busy_seconds": 0.0,
    }
    more: Any = {"fused_with": [], "inbound": {}, "heaviest_keys": []}
    return {"v": {**numbers, "processors": [numbers], **more}}


class Peers(RuleBasedStateMachine):
    """One peer after the other has the part. Each goes on from the last commit, and tells what it
    has done now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.committed = self.reached = self.most = self.lost = self.shown = 0
        self.nodes: dict[int, Told] = {}
        self.untold = 0
        self._begin()

    def _begin(self) -> None:
        self.reached = self.committed
        self.tally = Tally(PART, len(self.nodes) + 1)
        self.nodes[self.tally.offer] = Told("task", 0, self.tally.offer, {}, {})
        self.tally.look = lambda: items(self.reached - self.committed)

    @rule(count=st.integers(1, 9))
    def works(self, count: int) -> None:
        self.reached += count
        self.most = max(self.most, self.reached)

    @rule()
    def raises_and_begins_again(self) -> None:
        self.reached = self.committed

    @rule()
    def commits(self) -> None:
        more = self.reached - self.committed
        self.committed = self.reached
        self.tally.commits(items(more))
        self.untold += more

    @rule()
    def tells(self) -> None:
        if (told := self.tally.told()) is not None:
            self.nodes[told.offer] = Told.read(json.loads(json.dumps(told.words())))
        self.untold = 0

    @rule()
    def dies(self) -> None:
        self.lost += self.untold
        self.untold = 0
        self._begin()

    @invariant()
    def nothing_falls_and_nothing_is_counted_twice(self) -> None:
        found = so_far(self.nodes.values(), ()).get("v", {"received": 0})["received"]
        assert self.shown <= found <= self.most
        self.shown = found

    def teardown(self) -> None:
        self.commits()
        self.tells()
        found = so_far(self.nodes.values(), ()).get("v", {"received": 0})["received"]
        assert self.committed - self.lost <= found <= self.most
        if not self.lost and self.most == self.committed:
            assert found == self.committed


TestPeers = Peers.TestCase


def test_peers_at_the_same_time_add_up() -> None:
    told = []
    for offer in (1, 2):
        tally = Tally(PART, offer)
        tally.commits(items(10))
        tally.commits(items(5))
        told.append(tally.told())
    assert so_far([each for each in told if each], ())["v"]["received"] == 30


def test_parts_that_have_told_nothing_are_processors_that_wait() -> None:
    tally = Tally(PART, 1)
    tally.commits(items(12))
    told = tally.told()
    assert told is not None
    found = so_far([told], [TaskShape(("v", "w"), parts=3, complete=1)])
    assert [one["received"] for one in found["v"]["processors"]] == [12, 0, 0]
    assert (found["v"]["done"], found["w"]["received"]) == (1, 0)


def test_a_part_on_spark_tells_only_of_vertices_that_have_begun() -> None:
    total = so_far([Told("spark", 0, 1, items(5), {})], [TaskShape(("v", "later"), 1, 0)])
    assert [(name, each["received"], len(each["processors"])) for name, each in total.items()] == [
        ("v", 5, 1),
        ("later", 0, 1),
    ]


def test_metrics_that_cannot_be_read_do_no_harm() -> None:
    tally = Tally(PART, 1)
    tally.commits(items(5))
    tally.look = {}.popitem  # type: ignore[assignment]
    told = tally.told()
    assert told is not None
    assert told.so_far["v"]["received"] == 5


def test_what_is_told_is_text() -> None:
    tally = Tally(PART, 7, by_processor=True)
    tally.commits(items(3))
    told = tally.told()
    assert told is not None
    assert Tallies.read(Tallies(99, (told,)).text()) == Tallies(99, (told,))


class Watch:
    """Looks at what is shown of a job at each check of its peers."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.shown: dict[str, Any] = {}

    def __call__(self) -> None:
        told = [each for tally in self._bench.tallies if (each := tally.told()) is not None]
        now = so_far(told, ())
        for name, before in self.shown.items():
            for key in ("received", "emitted", "busy_seconds"):
                assert now[name][key] >= before[key], (name, key)
        self.shown = now


@pytest.mark.parametrize(
    "make",
    [counting, lambda: dag_of(Keeps), lambda: dag_of(Forgets)],
    ids=["grouping", "saves-state", "starts-anew"],
)
@pytest.mark.parametrize("at", [2, 5, 9, 14])
def test_what_is_shown_never_falls_when_peers_stop_and_is_exact_at_the_end(
    make: Callable[[], DAG], at: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, make(), members=2)
    watch = Watch(bench)
    for part in bench.parts:
        stop = StopAt(at)

        def check(stop: StopAt = stop) -> None:
            watch()
            stop()

        if not bench.work(part, check):
            assert bench.work(part, watch)
    watch()
    bench.close()
    assert {
        name: (vertex["received"], vertex["emitted"]) for name, vertex in watch.shown.items()
    } == {name: (vertex["received"], vertex["emitted"]) for name, vertex in bench.metrics.items()}
