"""Metrics and members of light jobs on members: they move while a job runs, never fall, are exact
at the end, and cost nothing while nobody asks."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import AbstractProcessor, Execution, JobCancelled, JobFailed
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.cluster.light import figures as module
from pyrite.cluster.light.figures import (
    PERIOD,
    Figures,
    PartFigures,
    RemoteFigures,
    figures_of,
)
from pyrite.cluster.light.watched import Watched
from pyrite.errors import PyriteError
from pyrite.watching.observing import view_of
from tests.cluster.test_light_jobs import running, straight


class Counting(AbstractProcessor):
    """Emits numbers until the job is cancelled."""

    polls = True

    def complete(self) -> bool:
        for _ in range(100):
            self.emit(1)
        return False


class Sleeping(AbstractProcessor):
    """Holds up its member for a second."""

    def complete(self) -> bool:
        time.sleep(1.5)
        return True


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.01)


def until(look: Callable[[], bool], seconds: float = 10.0) -> None:
    give_up = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def received(execution: Execution, vertex: str = "v1") -> int:
    number: int = execution.metrics().get(vertex, {"received": 0})["received"]
    return number


@pytest.mark.usefixtures("often")
def test_metrics_move_and_members_are_known_while_a_job_runs(client: Client) -> None:
    execution = client.new_light_job(straight(Counting, p.noop())).execute()
    until(lambda: received(execution) > 0)
    before = received(execution)
    until(lambda: received(execution) > before)
    until(lambda: len(execution.members()) == 2)
    members = execution.members()
    assert len({member["pid"] for member in members}) == 2
    assert all(member["memory_bytes"] > 1 << 20 for member in members)
    assert len(execution.metrics()["v1"]["processors"]) == 2
    execution.cancel()
    assert isinstance(execution.exception(10), JobCancelled)
    assert received(execution) >= before
    assert execution.members() == []


def test_a_job_that_has_ended_has_exact_metrics_also_if_nobody_has_asked(client: Client) -> None:
    dag = straight(p.read_items(range(1000)), p.filter(lambda n: n % 2 == 0), p.noop())
    execution = client.new_light_job(dag).execute()
    execution.result(10)
    metrics = execution.metrics()
    assert (metrics["v0"]["emitted"], metrics["v1"]["received"]) == (1000, 1000)
    assert metrics["v2"]["received"] == 500
    view = view_of(execution)
    assert (view.kind, view.items_in, view.items_out) == ("light on members", 1000, 500)


def test_once_somebody_asks_short_jobs_can_be_asked_about_later_too(client: Client) -> None:
    job = client.new_light_job(straight(p.read_items(range(5)), p.noop()))
    job.execute().result(10)
    first = job.execute()
    first.result(10)
    assert received(first) == 5
    executions = [job.execute() for _ in range(20)]
    for execution in executions:
        execution.result(10)
    assert [received(execution) for execution in executions] == [5] * 20


@pytest.mark.usefixtures("often")
def test_the_job_of_another_client_has_metrics_too(cluster: LocalCluster, client: Client) -> None:
    execution = client.new_light_job(straight(Counting, p.noop())).execute()
    with cluster.client() as other:
        (found,) = running(other, 1)
        until(lambda: received(found) > 0)
        view = view_of(found)
        assert [vertex.name for vertex in view.vertices] == ["v0", "v1"]
        assert [(edge.source, edge.destination) for edge in view.edges] == [("v0", "v1")]
        execution.cancel()
        assert isinstance(found.exception(10), JobCancelled)
        assert received(found) > 0


def test_nobody_asks_members_about_a_job_unless_somebody_wants_to_know(client: Client) -> None:
    execution = client.new_light_job(straight(p.read_items([1]), p.noop())).execute()
    execution.result(10)
    before = next(client._calls._numbers)
    execution = client.new_light_job(straight(p.read_items([1]), p.noop())).execute()
    execution.result(10)
    assert next(client._calls._numbers) == before + 1


@pytest.mark.usefixtures("often")
def test_metrics_stay_when_a_member_is_lost() -> None:
    with LocalCluster(members=2) as cluster, cluster.client() as client:
        cluster.wait_until_complete()
        execution = client.new_light_job(straight(Counting, p.noop())).execute()
        until(lambda: len(execution.members()) == 2 and received(execution) > 0)
        seen = [received(execution)]
        other = next(m for m in execution.members() if m["member"] != execution.member)
        os.kill(other["pid"], signal.SIGKILL)
        while not execution.done():
            seen.append(received(execution))
        assert isinstance(execution.exception(10), JobFailed)
        seen.append(received(execution))
    assert all(before <= after for before, after in pairwise(seen)), seen


def test_a_member_that_a_function_keeps_busy_holds_up_nobody_who_asks(client: Client) -> None:
    execution = client.new_light_job(straight(Sleeping, p.noop())).execute()
    began = time.monotonic()
    while not execution.done():
        asked = time.monotonic()
        execution.metrics()
        assert time.monotonic() - asked < 1.2
    execution.result(10)
    assert time.monotonic() - began > 1
    assert execution.metrics()["v0"]["done"] == 2


# What a client and a coordinator decide


def items(count: int) -> bytes:
    numbers: dict[str, Any] = {
        **dict.fromkeys(("received", "emitted", "skipped", "dead_letters", "queue_fill"), count),
        **dict.fromkeys(("busy_seconds", "held_bytes", "spilled_bytes", "done"), 0),
    }
    more: dict[str, Any] = {"fused_with": [], "inbound": {}, "heaviest_keys": []}
    return pickle.dumps({"v": {**numbers, "processors": [numbers], **more}})


def shown(parts: list[PartFigures] | None) -> int:
    return int(figures_of(parts or []).metrics.get("v", {"received": 0})["received"])


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["tells", "is late", "ends", "is lost"])),
        max_size=30,
    )
)
def test_what_is_shown_never_falls_whatever_members_do(steps: list[tuple[int, str]]) -> None:
    watched, done, last = Watched(), [0, 0, 0], 0
    over: set[int] = set()
    for index, what in steps:
        done = [count if i in over else count + 1 for i, count in enumerate(done)]

        def ask(
            i: int,
            told: Callable[[PartFigures | None], None],
            index: int = index,
            what: str = what,
            done: list[int] = done,
        ) -> None:
            if not (i == index and what == "is late"):
                lost = i == index and what == "is lost"
                told(None if lost else PartFigures(items(done[i])))

        future = watched.ask(3, ask)
        if what == "ends" and index not in over:
            over.add(index)
            watched.part_ended(index, items(done[index]))
        watched.answer()
        found = shown(future.result(0))
        assert last <= found <= sum(done)
        last = found


def test_figures_from_the_middle_are_not_those_at_the_end() -> None:
    def tell(index: int, told: Callable[[PartFigures | None], None]) -> None:
        told(PartFigures(items(1)))

    watched = Watched()
    watched.ask(2, tell)
    watched.part_ended(0, items(5))
    assert shown(watched.last_figures(2)) == 6  # if the other one is lost
    watched.part_ended(1, b"")
    assert watched.last_figures(2) == []


class Asked:
    def __init__(self) -> None:
        self.count = 0
        self.now = 0.0
        self.answers: list[Figures | Exception | None] = []

    def __call__(self) -> Future[Figures | None]:
        self.count += 1
        future: Future[Figures | None] = Future()
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        return future


def test_a_member_is_asked_once_in_a_period_however_often_one_looks() -> None:
    asked = Asked()
    asked.answers = [Figures({"v": 1}), Figures({"v": 2})]
    figures = RemoteFigures(asked, clock=lambda: asked.now)
    assert [figures.now().metrics for _ in range(5)] == [{"v": 1}] * 5
    asked.now += PERIOD
    assert figures.now().metrics == {"v": 2}
    assert asked.count == 2


def test_what_was_seen_stays_if_no_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    asked = Asked()
    asked.answers = [Figures({"v": 1}), PyriteError("the member was lost"), None]
    figures = RemoteFigures(asked, clock=lambda: asked.now)
    for _ in range(4):  # an answer, an error, nothing known, and no answer at all
        assert figures.now().metrics == {"v": 1}
        asked.now += PERIOD
    figures.end(lambda: None)
    assert figures.now().metrics == {"v": 1}
    assert asked.count == 4


def test_the_last_figures_are_read_once_and_only_if_wanted() -> None:
    read = []
    figures = RemoteFigures(lambda: None)
    figures.end(lambda: read.append(1) or Figures({"v": 9}))
    assert read == []
    assert [figures.now().metrics for _ in range(3)] == [{"v": 9}] * 3
    assert read == [1]
