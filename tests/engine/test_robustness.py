"""An instance survives hostile or careless use."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    InvalidDAG,
    JobCancelled,
    JobFailed,
    Processor,
    between,
    from_,
)
from pyrite import processors as p
from tests.engine.test_cancel_and_failure import works
from tests.engine.test_fusion import line


@pytest.mark.parametrize("count", [1000, 1024, 5000, 30_000])
def test_a_flat_map_before_a_sink_loses_nothing(pyr: Instance, tmp_path: Path, count: int) -> None:
    dag = line(p.read_items([0, 1]), p.flat_map(lambda n: range(count)), p.write_list("out"))
    pyr.new_light_job(dag).execute().result(10)
    assert Counter(pyr.list("out")) == Counter(dict.fromkeys(range(count), 2))
    dag = line(p.read_items(range(count)), p.flat_map(lambda n: [n, n]), p.write_files(tmp_path))
    pyr.new_light_job(dag).execute().result(10)
    assert len((tmp_path / "part-00000.txt").read_text().split()) == 2 * count


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Sly:
    def __repr__(self) -> str:
        raise SystemExit


def raising(error: BaseException) -> Any:
    def fail(item: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    "steps", [(p.map(raising(Mute())),), (p.map(lambda n: Sly()), p.map(raising(ValueError("x"))))]
)
def test_errors_and_items_that_cannot_be_printed_fail_only_their_job(
    pyr: Instance, steps: Any
) -> None:
    with pytest.raises(JobFailed):
        pyr.new_light_job(line(p.read_items([1]), *steps)).execute().result(5)
    assert works(pyr)


def test_a_callback_may_exit_wait_for_another_job_or_close_the_instance() -> None:
    with pyrite.instance() as pyr:
        done: list[Any] = []
        finished = threading.Event()

        def nested(execution: Any) -> None:
            done.append(works(pyr))
            finished.set()

        may_end = threading.Event()
        dag = line(p.read_items([1]), p.map(lambda n: may_end.wait(5)))
        pyr.new_light_job(dag).execute().add_done_callback(lambda execution: sys.exit(1))
        pyr.new_light_job(dag).execute().add_done_callback(nested)
        may_end.set()
        assert finished.wait(5)
        assert done == [True]
        closed = threading.Event()
        pyr.new_light_job(dag).execute().add_done_callback(
            lambda execution: (pyr.close(), closed.set())
        )
        assert closed.wait(5)


class TakesTooMuch(Processor):
    def process(self, ordinal: int, inbox: Any) -> None:
        inbox.remove(len(inbox) + 3)


class LiesAboutItsFailure(AbstractProcessor):
    def try_process_0(self, item: Any) -> None:
        raise ValueError("real")

    def failed_at(self, inbox: Any) -> Any:
        raise KeyError


@pytest.mark.parametrize(
    ("kind", "message"), [(TakesTooMuch, "cannot remove 5 items"), (LiesAboutItsFailure, "real")]
)
def test_a_processor_that_breaks_its_tools_fails_only_its_job(
    pyr: Instance, kind: Any, message: str
) -> None:
    dag = DAG()
    dag.edge(between(dag.vertex("a", p.read_items([1, 2])), dag.vertex("b", kind)))
    with pytest.raises(JobFailed, match=message):
        pyr.new_light_job(dag).execute().result(5)
    assert works(pyr)


def test_collections_may_be_used_by_what_is_put_into_them(pyr: Instance) -> None:
    m, numbers = pyr.map("m"), pyr.list("l")
    m.update({n: n for n in range(5)})
    m.update((k, v + 1) for k, v in m.items())
    m.update(m)
    numbers.extend([1, 2])
    numbers[:] = numbers
    numbers.extend(numbers)
    assert (m[4], list(numbers)) == (5, [1, 2, 1, 2])
    m.clear()
    m["self"] = m
    numbers.append(numbers)
    assert (repr(m), repr(numbers)) == ("Map('m', {'self': ...})", "List('l', [1, 2, 1, 2, ...])")


def test_every_call_of_a_collection_is_one_step(pyr: Instance) -> None:
    numbers, m = pyr.list("l"), pyr.map("m")
    numbers.extend(range(4000))
    m.update({n: n for n in range(4000)})
    popped: list[Any] = []

    def pop() -> None:
        for n in range(1000):
            popped.append(numbers.pop())
            m.pop(n, None)
            list(m.items())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=pop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sorted(popped) == list(range(4000))


class NotTwiceTheSame:
    """Iterates in another order each time."""

    turn = 0

    def __iter__(self) -> Iterator[int]:
        self.turn += 1
        return iter(range(10) if self.turn % 2 else range(9, -1, -1))


@pytest.mark.parametrize("items", [deque(range(10)), NotTwiceTheSame(), dict.fromkeys(range(10))])
def test_any_iterable_is_read_once_in_all(pyr: Instance, items: Any) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items(items), local_parallelism=3)
    dag.edge(between(read, dag.vertex("sink", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(5)
    assert sorted(pyr.list("out")) == list(range(10))


def test_execute_that_meets_close_ends_or_is_refused() -> None:
    for _ in range(5):
        pyr = pyrite.instance()
        dag = DAG()
        for n in range(200):
            dag.vertex(f"v{n}", AbstractProcessor)
        outcome: list[Any] = []

        def submit(pyr: Instance = pyr, dag: DAG = dag, outcome: list[Any] = outcome) -> None:
            try:
                outcome.append(pyr.new_light_job(dag).execute().exception(5))
            except pyrite.PyriteError as refused:
                outcome.append(refused)

        thread = threading.Thread(target=submit)
        thread.start()
        pyr.close()
        thread.join(10)
        assert len(outcome) == 1


def test_thirty_flat_maps_in_a_row_run(pyr: Instance) -> None:
    dag = DAG()
    vertices = [dag.vertex("source", p.read_items([1, 2]))]
    vertices += [dag.vertex(f"v{n}", p.flat_map(lambda item: [item])) for n in range(30)]
    vertices.append(dag.vertex("sink", p.write_list("out")))
    for one, two in itertools.pairwise(vertices):
        dag.edge(between(one, two))
    pyr.new_light_job(dag).execute().result(5)
    assert list(pyr.list("out")) == [1, 2]


def test_a_ring_of_priorities_is_refused() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items(range(9999))), dag.vertex("b", p.read_items(range(9999)))
    j, k = dag.vertex("j", p.noop()), dag.vertex("k", p.noop())
    dag.edge(from_(a, 0).to(j, 0)).edge(from_(b, 0).to(j, 1).priority(1))
    dag.edge(from_(b, 1).to(k, 0)).edge(from_(a, 1).to(k, 1).priority(1))
    with pytest.raises(InvalidDAG, match="would deadlock"):
        dag.validate()


def test_endless_emitting_without_an_edge_can_be_cancelled(pyr: Instance) -> None:
    class Endless(AbstractProcessor):
        def init(self, context: Any) -> None:
            self.rest = itertools.count(1)

        def complete(self) -> bool:
            return self.emit_cooperatively(self.rest)

    dag = DAG()
    dag.vertex("endless", Endless)
    execution = pyr.new_light_job(dag).execute()
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(5)


def test_a_processor_that_refuses_its_item_parks_its_worker(pyr: Instance) -> None:
    class Refuses(AbstractProcessor):
        def try_process_0(self, item: Any) -> bool:
            return False

    dag = DAG()
    dag.edge(between(dag.vertex("a", p.read_items([1])), dag.vertex("b", Refuses)))
    execution = pyr.new_light_job(dag).execute()
    used = time.process_time()
    threading.Event().wait(0.4)
    assert time.process_time() - used < 0.2
    execution.cancel()
    assert execution.exception(5)


def test_a_slow_function_is_cancelled_after_a_few_items(pyr: Instance) -> None:
    called = []

    def slow(n: int) -> int:
        called.append(n)
        threading.Event().wait(0.02)
        return n

    execution = pyr.new_light_job(line(p.read_items(range(1000)), p.map(slow))).execute()
    while not called:
        pass
    execution.cancel()
    assert execution.exception(5)
    assert len(called) <= 16


def test_a_cancel_that_comes_during_the_commit_comes_too_late(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyrite.processors.files.committing import FolderCommit

    committing, go_on = threading.Event(), threading.Event()
    commit = FolderCommit.commit

    def slow_commit(self: Any, reports: Any) -> None:
        committing.set()
        assert go_on.wait(5)
        commit(self, reports)

    monkeypatch.setattr(FolderCommit, "commit", slow_commit)
    execution = pyr.new_light_job(line(p.read_items(["a"]), p.write_files(tmp_path))).execute()
    assert committing.wait(5)
    execution.cancel()
    go_on.set()
    assert execution.result(5) is None
    assert (tmp_path / "part-00000.txt").read_text() == "a\n"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            (p.read_items([1]), p.read_items([2])),
            "vertex 'b' is a source and takes no items, but edge 'a -> b' leads to it",
        ),
        (
            (p.read_items([1]), p.write_list("x"), p.noop()),
            "vertex 'b' is a sink and emits nothing, but edge 'b -> c' leads from it",
        ),
    ],
)
def test_input_to_a_source_and_output_of_a_sink_are_refused(
    pyr: Instance, steps: Any, message: str
) -> None:
    with pytest.raises(InvalidDAG, match=message):
        pyr.new_light_job(line(*steps)).execute()


def test_two_sinks_to_one_folder_are_refused(pyr: Instance, tmp_path: Path) -> None:
    dag = DAG()
    for name in ("a", "b"):
        dag.edge(
            between(
                dag.vertex(f"{name}1", p.read_items([1])),
                dag.vertex(name, p.write_files(tmp_path / "out")),
            )
        )
    with pytest.raises(InvalidDAG, match="vertices 'a' and 'b' both write to folder"):
        pyr.new_light_job(dag).execute()


def test_a_container_that_cannot_be_made_names_its_vertex(pyr: Instance) -> None:
    def none() -> Any:
        raise ValueError("no container")

    with pytest.raises(JobFailed, match="vertex 'b'") as failed:
        pyr.new_light_job(
            line(p.read_items([1]), p.collect(none, list.append), p.write_list("x"))
        ).execute().result(5)
    assert failed.value.vertex == "b"


def test_an_initial_value_that_is_changed_is_each_groups_own(pyr: Instance) -> None:
    def add(values: list[int], n: int) -> list[int]:
        values.append(n)
        return values

    for step, expected in (
        (p.accumulate([], add), [[1, 2, 3]]),
        (p.group_and_accumulate(lambda n: n % 2, [], add), [(1, [1, 3]), (0, [2])]),
    ):
        dag = line(p.read_items([1, 2, 3]), step, p.write_list("out"))
        for _ in range(2):
            pyr.list("out").clear()
            pyr.new_light_job(dag).execute().result(5)
            assert list(pyr.list("out")) == expected


def test_a_hundred_thousand_items_emitted_at_once_move_on_in_linear_time(pyr: Instance) -> None:
    class Burst(AbstractProcessor):
        def complete(self) -> None:
            self.outbox.add_all(list(range(400_000)))

    dag = DAG()
    burst = dag.vertex("burst", Burst, local_parallelism=1)
    sink = dag.vertex("sink", p.accumulate(0, lambda n, item: n + 1), local_parallelism=4)
    out = dag.vertex("out", p.write_list("out"), local_parallelism=1)
    dag.edge(between(burst, sink).broadcast().config(queue_size=64)).edge(between(sink, out))
    started = time.perf_counter()
    pyr.new_light_job(dag).execute().result(30)
    assert time.perf_counter() - started < 10  # it was minutes when every step copied the rest
    assert list(pyr.list("out")) == [400_000] * 4


def test_functions_are_the_same_only_if_they_do_the_same() -> None:
    from pyrite.functions import same

    class Thing:
        def __init__(self, n: int) -> None:
            self.n = n
            self.me = self

        def f(self) -> None:
            pass

        def g(self) -> None:
            self.n += 1

    thing = Thing(1)
    assert same(functools.partial(max, 1), functools.partial(max, 1))
    assert same(operator.itemgetter(0), operator.itemgetter(0))
    assert same(thing.f, thing.f)
    assert same(Thing(1), Thing(1))
    for one, two in (
        (functools.partial(max, 1), functools.partial(max, 2)),
        (operator.itemgetter(0), operator.itemgetter(1)),
        (thing.f, thing.g),
        (ValueError(1), ValueError(2)),
        (Thing(1), Thing(2)),
        (threading.Lock(), threading.Lock()),
    ):
        assert not same(one, two)


def test_a_spill_is_used_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrite.processors.groups import spill
    from tests.processors.groups.test_spill import AlwaysShort, grouped

    spilled: list[Any] = []
    add = spill.Spill.add
    monkeypatch.setattr("pyrite.processors.loops.chain.Memory", AlwaysShort)
    monkeypatch.setattr(spill, "FEWEST_GROUPS", 10)
    monkeypatch.setattr(
        spill.Spill, "add", lambda self, key, item: (spilled.append(key), add(self, key, item))
    )
    counted = grouped(
        p.group_and_accumulate(lambda n: n, 0, lambda n, item: n + 1), [list(range(50))] * 40
    )
    assert sorted(counted) == [(n, 40) for n in range(50)]
    assert spilled == []  # all keys came before memory was looked at
    counted = grouped(
        p.group_and_accumulate(lambda n: n, 0, lambda n, item: n + 1), [[n] for n in range(500)] * 2
    )
    assert sorted(counted) == [(n, 2) for n in range(500)]
    assert len(set(spilled)) > 400
