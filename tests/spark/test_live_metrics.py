"""Metrics of jobs on Spark while they run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Execution, Instance, between
from pyrite import processors as p
from pyrite.errors import JobCancelled
from pyrite.spark.live import hearing
from tests.spark.test_faults import once

ITEMS = 2000


def waits_at(item: int, go: Path) -> Callable[[int], int]:
    """A function that waits at an item until the file is there."""

    def step(n: int) -> int:
        if n == item:
            while not go.exists():
                time.sleep(0.02)
        return n

    return step


def key(n: int) -> int:
    return 0 if n % 2 else n


def counted(step: Any) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(ITEMS)))
    work = dag.vertex("work", p.map(step))
    group = dag.vertex("group", p.group_and_accumulate(key, 0, lambda count, n: count + 1))
    sink = dag.vertex("sink", p.write_map("counts"))
    by_key = between(work, group).distributed().partitioned(key=key)
    return dag.edge(between(source, work)).edge(by_key).edge(between(group, sink))


def numbers(execution: Execution) -> dict[str, tuple[int, int]]:
    return {
        name: (vertex["received"], vertex["emitted"])
        for name, vertex in execution.metrics().items()
    }


EXACT = {"source": (0, 2000), "work": (2000, 2000), "group": (2000, 1000), "sink": (1000, 0)}


def wait_until(is_so: Callable[[], bool], execution: Execution) -> None:
    until = time.monotonic() + 90  # the session may have to start first
    while not is_so():
        assert not execution.done(), execution.exception(0)
        assert time.monotonic() < until
        time.sleep(0.02)


def test_metrics_and_processes_are_known_while_the_job_runs(pyr: Instance, tmp_path: Path) -> None:
    go = tmp_path / "go"
    execution = pyr.new_job(counted(waits_at(1500, go))).execute()
    wait_until(lambda: numbers(execution).get("work", (0, 0))[0] > 100, execution)
    wait_until(lambda: bool(execution.members()), execution)  # one of two tasks may have ended
    running, members = execution.metrics(), execution.members()
    go.touch()
    execution.result(60)
    assert running["work"]["received"] < ITEMS
    assert running["work"]["done"] < 2
    assert running["work"]["busy_seconds"] > 0
    assert members
    assert all(each["pid"] != os.getpid() for each in members)
    assert all(each["memory_bytes"] > 1 << 20 for each in members)
    assert numbers(execution) == EXACT
    assert execution.members() == []


def test_the_end_has_times_and_the_heaviest_key(pyr: Instance) -> None:
    execution = pyr.new_job(counted(lambda n: n)).execute()
    execution.result(60)
    metrics = execution.metrics()
    assert numbers(execution) == EXACT
    ((edge, heavy, count, share),) = metrics["group"]["heaviest_keys"][:1]
    assert (edge, heavy) == ("'work -> group'", "0")
    assert abs(share - 0.5) < 0.1
    assert abs(count - 1000) < 200
    assert [vertex["done"] for vertex in metrics.values()] == [2, 2, 2, 2]


def kill_after_telling() -> None:
    time.sleep(0.8)
    os.kill(os.getpid(), signal.SIGKILL)


def test_counters_do_not_fall_when_a_worker_is_killed(pyr: Instance, tmp_path: Path) -> None:
    execution = pyr.new_job(counted(once(tmp_path / "killed", kill_after_telling))).execute()
    seen = []
    while not execution.done():
        seen.append(numbers(execution).get("work", (0, 0))[0])
        time.sleep(0.02)
    execution.result(0)
    assert seen == sorted(seen)
    assert seen[len(seen) // 2] > 0
    assert numbers(execution) == EXACT


@pytest.mark.parametrize("address", ["192.0.2.1", "no-such-host.invalid"])
def test_a_driver_that_cannot_be_reached_delays_nothing(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(hearing, "addresses_of", lambda context: (address, "127.0.0.1"))
    execution = pyr.new_job(counted(lambda n: n)).execute()
    execution.result(60)
    assert numbers(execution) == EXACT


def test_a_driver_that_cannot_listen_runs_the_job(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "addresses_of", lambda context: ("x", "192.0.2.1"))
    execution = pyr.new_job(counted(lambda n: n)).execute()
    execution.result(60)
    assert numbers(execution) == EXACT


def test_a_driver_may_fork(pyr: Instance, tmp_path: Path) -> None:
    go = tmp_path / "go"
    execution = pyr.new_job(counted(waits_at(1500, go))).execute()
    wait_until(lambda: bool(execution.members()), execution)
    child = os.fork()
    if not child:
        os._exit(0 if not execution.members() and execution.done() else 1)
    assert os.waitpid(child, 0)[1] == 0
    before = execution.metrics()["work"]["busy_seconds"]
    wait_until(lambda: execution.metrics()["work"]["busy_seconds"] > before, execution)
    go.touch()
    execution.result(60)
    assert numbers(execution) == EXACT


def test_a_cancelled_job_keeps_what_was_told(pyr: Instance, tmp_path: Path) -> None:
    execution = pyr.new_job(counted(waits_at(1500, tmp_path / "never"))).execute()
    wait_until(lambda: numbers(execution).get("work", (0, 0))[0] > 100, execution)
    execution.cancel()
    assert isinstance(execution.exception(10), JobCancelled)
    assert 100 < execution.metrics()["work"]["received"] < ITEMS
    assert execution.members() == []
