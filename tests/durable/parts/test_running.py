"""What a part does between its first message and its commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, ProcessorContext, between, from_
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


class Numbers(AbstractProcessor):
    """Emits 0 to 29, a few at a time, and saves how far it is."""

    def __init__(self) -> None:
        self.next = 0

    def complete(self) -> bool:
        self.emit(self.next)
        self.next += 1
        return self.next == 30

    def save_snapshot(self) -> Iterator[tuple[str, int]]:
        yield "next", self.next

    def restore_snapshot(self, key: str, value: int) -> None:
        self.next = value


def test_a_source_that_saves_its_position_goes_on_from_its_last_commit(
    tmp_path: Path, commits_at_once: None
) -> None:
    bench = Bench(tmp_path, ends_with_list(Numbers, p.filter(lambda n: True)), members=1)
    part, stops = bench.parts[0], 0
    while not bench.work(part, stop_after_commit(bench, part)):
        stops += 1
        assert stops < 100
    bench.work_all()
    assert stops > 3
    assert list(bench.collections.list("out")) == list(range(30))
    bench.close()


def test_pairs_and_other_items_of_a_partitioned_edge_keep_their_order(tmp_path: Path) -> None:
    """The others are enough for a message of their own, and the pairs before them are not."""
    items = [*((1, n) for n in range(3)), *(f"n{n}" for n in range(3000)), (1, 3)]
    dag = DAG()
    read, out = dag.vertex("read", p.read_items(items)), dag.vertex("out", p.write_list("out"))
    same = dag.vertex("same", p.map(lambda item: item))
    dag.edge(between(read, same))
    dag.edge(between(same, out).distributed().partitioned(key=lambda item: 0))
    bench = Bench(tmp_path, dag, members=3)
    bench.work_all()
    assert list(bench.collections.list("out")) == items
    bench.close()


class CountsEnds(AbstractProcessor):
    """Passes items on, and at the end tells how often its first edge has ended."""

    def __init__(self) -> None:
        self.ends = 0

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.emit(item)

    def complete_edge(self, ordinal: int) -> None:
        self.ends += ordinal == 0

    def complete(self) -> None:
        self.emit(("ends", self.ends))

    def save_snapshot(self) -> Any:
        return [("ends", self.ends)]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self.ends = value


def test_a_resumed_part_completes_nothing_that_was_completed_before(
    tmp_path: Path, commits_at_once: None
) -> None:
    """The sum is emitted, and the first edge ends, before the second edge is read."""
    dag = DAG()
    first, second = (dag.vertex(name, p.read_items(range(3000))) for name in ("first", "second"))
    total = dag.vertex("total", p.accumulate(0, lambda sum, _: sum + 1))
    both, out = dag.vertex("both", CountsEnds), dag.vertex("out", p.write_list("out"))
    dag.edge(between(first, total))
    dag.edge(from_(total).to(both, 0))
    dag.edge(from_(second).to(both, 1).priority(1))
    dag.edge(between(both, out))
    bench = Bench(tmp_path, dag, members=1)
    stops = 0
    while not bench.work(bench.parts[0], stop_after_commit(bench, bench.parts[0])):
        stops += 1
    bench.work_all()
    assert stops > 4
    assert bench.found() - Counter(range(3000)) == Counter([3000, ("ends", 1)])
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
