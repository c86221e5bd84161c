"""A peer stops at any point of its work on a part, or is only paused there while another one does
its work: the result of the job is the same."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, between
from pyrite import processors as p
from pyrite.durable.parts import concurrent, sequential
from pyrite.durable.protocol.workflow import Part
from tests.durable.parts.bench import Bench, StopAt


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short job has many commits."""
    monkeypatch.setattr(sequential, "COMMIT_MESSAGES", 2)
    monkeypatch.setattr(sequential, "READ_AHEAD", 3)
    monkeypatch.setattr(concurrent, "BATCH", 2)


class Keeps(AbstractProcessor):
    """Passes each number on, with the sum of all so far at its end. It saves its state."""

    def __init__(self) -> None:
        self.sum = 0

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.sum += item
        self.emit(item)

    def complete(self) -> None:
        self.emit(("sum", self.sum))

    def save_snapshot(self) -> Any:
        return [("sum", self.sum)]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self.sum = value


class Forgets(AbstractProcessor):
    """The same, but it does not save its state: its part must start anew."""

    def __init__(self) -> None:
        self.sum = 0

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.sum += item
        self.emit(item)

    def complete(self) -> None:
        self.emit(("sum", self.sum))


ITEMS = list(range(60))


def dag_of(middle: Any) -> DAG:
    dag = DAG()
    read = dag.vertex("read", p.read_items([ITEMS[at : at + 5] for at in range(0, 60, 5)]))
    flat = dag.vertex("flat", p.flat_map(lambda chunk: chunk))
    work = dag.vertex("work", middle)
    sink = dag.vertex("sink", p.write_list("out"))
    dag.edge(between(read, flat))
    dag.edge(between(flat, work).distributed().all_to_one())
    dag.edge(between(work, sink).distributed())
    return dag


def counting() -> DAG:
    return dag_of(p.group_and_accumulate(lambda n: n % 7, 0, lambda total, n: total + n))


def expected_of(make: Callable[[], DAG], folder: Path) -> Counter[Any]:
    bench = Bench(folder, make(), members=2)
    bench.work_all()
    found = bench.found()
    bench.close()
    return found


def each_stop(
    make: Callable[[], DAG], folder: Path, part_at: Callable[[Bench], Part], instead: bool
) -> Iterator[Counter[Any]]:
    """The results of the job, with the first peer on a part stopped, or paused while another one
    does the part, at each of its checks."""
    for at in range(1, 200):
        bench = Bench(folder / str(at), make(), members=2)
        part = part_at(bench)
        for before in bench.parts[: bench.parts.index(part)]:
            assert bench.work(before)
        stop = StopAt(at, (lambda b=bench, p=part: b.work_instead(p)) if instead else None)  # type: ignore[misc]
        bench.work(part, stop)
        bench.work_all()
        yield bench.found()
        bench.close()
        shutil.rmtree(folder / str(at))
        if not stop.was_reached:
            return
    raise AssertionError("the part has more checks than this test expects")


@pytest.mark.parametrize("instead", [False, True], ids=["dies", "is-paused"])
@pytest.mark.parametrize("task", ["read + flat", "work", "sink", "completion"])
@pytest.mark.parametrize(
    "make",
    [counting, lambda: dag_of(Keeps), lambda: dag_of(Forgets)],
    ids=["grouping", "saves-state", "starts-anew"],
)
def test_the_result_is_the_same_wherever_a_peer_stops(
    make: Callable[[], DAG], task: str, instead: bool, tmp_path: Path
) -> None:
    expected = expected_of(make, tmp_path / "whole")

    def chosen(bench: Bench) -> Part:
        """The part with work to do: only one of them gets items over an all-to-one edge."""
        parts = [part for part in bench.parts if part.task.startswith(task)]
        return next(
            (part for part in parts if bench.workflow.by_name[part.task].parts == 1), parts[0]
        )

    for found in each_stop(make, tmp_path, chosen, instead):
        assert found == expected
