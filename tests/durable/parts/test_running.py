"""What a part does between its first message and its commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, ProcessorContext, between
from pyrite import processors as p
from pyrite.durable.parts import committing, sequential
from pyrite.durable.parts.committing import PartStopped
from tests.durable.parts.bench import Bench


def ends_with_list(*steps: Any) -> DAG:
    dag = DAG()
    vertices = [dag.vertex(f"v{number}", step) for number, step in enumerate(steps)]
    vertices.append(dag.vertex("out", p.write_list("out")))
    for first, second in pairwise(vertices):
        dag.edge(between(first, second))
    return dag


@pytest.fixture
def commits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential, "COMMIT_MESSAGES", 1)
    monkeypatch.setattr(sequential, "COMMIT_SECONDS", 0.0)


class AddsAtStart(AbstractProcessor):
    def init(self, context: ProcessorContext) -> None:
        context.collections.list("out").append("started")

    def try_process_0(self, item: Any) -> None:
        self.emit(item)

    def save_snapshot(self) -> Any:
        return [("nothing", 0)]


def test_what_a_processor_adds_in_init_counts_once_although_it_is_made_again(
    tmp_path: Path, commits_at_once: None
) -> None:
    bench = Bench(tmp_path, ends_with_list(p.read_items(range(4000)), AddsAtStart), members=1)
    part, stops = bench.parts[0], 0
    while not bench.work(part, stop_after_commit(bench, part)):
        stops += 1
        assert stops < 100
    bench.work_all()
    assert stops >= 1
    assert bench.found() == Counter([*range(4000), "started"])
    bench.close()


def stop_after_commit(bench: Bench, part: Any) -> Any:
    """A check that stops its peer after one commit beyond its taking over."""
    first: list[int] = []

    def check() -> None:
        sequence = bench.queues.record(part).sequence
        first.append(sequence)
        if sequence > first[0]:
            raise PartStopped("after a commit")

    return check


class SlowSource(AbstractProcessor):
    """Emits 0 to 29, a few at a time, and saves how far it is."""

    def __init__(self) -> None:
        self.next = 0

    def complete(self) -> bool:
        self.emit(self.next)
        self.next += 1
        time.sleep(0.001)
        return self.next == 30

    def save_snapshot(self) -> Iterator[tuple[str, int]]:
        yield "next", self.next

    def restore_snapshot(self, key: str, value: int) -> None:
        self.next = value


def test_a_source_that_saves_its_position_goes_on_from_its_last_commit(
    tmp_path: Path, commits_at_once: None
) -> None:
    bench = Bench(tmp_path, ends_with_list(SlowSource), members=1)
    part, stops = bench.parts[0], 0
    while not bench.work(part, stop_after_commit(bench, part)):
        stops += 1
        assert stops < 100
    bench.work_all()
    assert stops > 3
    assert list(bench.collections.list("out")) == list(range(30))
    bench.close()


def test_pairs_and_other_items_of_a_partitioned_edge_keep_their_order(tmp_path: Path) -> None:
    items = [*((1, n) for n in range(50)), "x", *((1, n) for n in range(50, 99)), [1, 2]]
    dag = DAG()
    read, out = dag.vertex("read", p.read_items(items)), dag.vertex("out", p.write_list("out"))
    same = dag.vertex("same", p.map(lambda item: item))
    dag.edge(between(read, same))
    dag.edge(between(same, out).distributed().partitioned(key=lambda item: 0))
    bench = Bench(tmp_path, dag, members=3)
    bench.work_all()
    assert list(bench.collections.list("out")) == items
    bench.close()


def test_a_large_state_is_not_saved_with_every_message(
    tmp_path: Path, commits_at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By this clock saving takes a second, and so does everything else: commits are at least ten
    looks at the clock apart."""
    commits: list[Any] = []
    commit = committing.commit
    monkeypatch.setattr(sequential, "commit", lambda *a: [commits.append(a), commit(*a)][1])
    now = iter(range(1_000_000))
    dag = ends_with_list(p.read_items(range(30_000)), p.group_and_collect(abs, list, list.append))
    bench = Bench(tmp_path, dag, members=1)
    assert bench.work(bench.parts[0], clock=lambda: float(next(now)))
    assert 2 <= len(commits) <= 12
    bench.close()
