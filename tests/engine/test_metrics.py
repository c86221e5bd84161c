"""The metrics of an execution, while it runs and at its end, and their algebra."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import DAG, AbstractProcessor, Instance, between, from_
from pyrite import processors as p
from pyrite.columns.grouping.aggregates import group_spec
from pyrite.columns.grouping.grouping import Grouping
from pyrite.columns.joining.joining import Joining, join_spec
from pyrite.columns.sorting.sorting import Sorting, sort_spec
from pyrite.engine.metrics import VertexMetrics, added_up, plus, since, with_times, without_times
from pyrite.processors.groups.held import about_bytes

WORDS = ["the"] * 600 + ["of"] * 300 + [f"w{n}" for n in range(100)]


class Gate:
    """Lets a test look at a job that has come to a certain item."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, item: Any) -> Any:
        self.reached.set()
        self.opened.wait(10)
        return item


def test_the_heaviest_keys_of_a_partitioned_edge() -> None:
    dag = DAG()
    words = dag.vertex("words", p.read_items(WORDS), local_parallelism=1)
    count = dag.vertex("count", p.group_and_accumulate(str, 0, lambda n, _: n + 1))
    dag.edge(between(words, count).partitioned())
    with pyrite.instance(cooperative_threads=2) as pyr:
        execution = pyr.new_light_job(dag).execute()
        execution.result(10)
    heaviest = execution.metrics()["count"]["heaviest_keys"]
    (edge, key, number, share), (_, second, _, _) = heaviest[:2]
    assert (edge, key, second) == ("'words -> count'", "'the'", "'of'")
    assert abs(number - 600) < 90
    assert abs(share - 0.6) < 0.09
    assert len(heaviest) <= 5
    assert execution.metrics()["words"]["heaviest_keys"] == []


def test_done_counts_the_processors_that_have_completed() -> None:
    gate = Gate()
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(10)), local_parallelism=1)
    slow = dag.vertex("slow", p.map(gate), local_parallelism=2)
    dag.edge(between(source, slow).isolated())
    with pyrite.instance(cooperative_threads=2) as pyr:
        execution = pyr.new_light_job(dag).execute()
        assert gate.reached.wait(10)
        running = execution.metrics()
        gate.opened.set()
        execution.result(10)
    assert running["slow"]["done"] < 2
    assert [vertex["done"] for vertex in execution.metrics().values()] == [1, 2]


def test_what_waits_on_an_edge_and_how_much_may() -> None:
    gate = Gate()

    class Stuck(AbstractProcessor):
        cooperative = False

        def try_process_0(self, item: object) -> None:
            gate(item)

    dag = DAG()
    source = dag.vertex("source", p.read_items(range(100_000)), local_parallelism=1)
    stuck = dag.vertex("stuck", Stuck, local_parallelism=2)
    dag.edge(between(source, stuck).config(queue_size=64))
    with pyrite.instance() as pyr:
        execution = pyr.new_light_job(dag).execute()
        assert gate.reached.wait(10)
        while execution.metrics()["stuck"]["inbound"]["source"]["fill"] < 128:
            pass
        inbound = execution.metrics()["stuck"]["inbound"]
        execution.cancel()
        gate.opened.set()
        execution.exception(10)
    assert inbound == {"source": {"received": inbound["source"]["received"], **FULL}}


FULL = {"fill": 128, "capacity": 128}


def test_a_fused_edge_has_no_queue(pyr: Instance) -> None:
    dag = DAG()
    source, plus_one = dag.vertex("source", p.read_items([1])), dag.vertex("plus", p.map(abs))
    execution = pyr.new_light_job(dag.edge(between(source, plus_one))).execute()
    execution.result(10)
    assert execution.metrics()["plus"]["inbound"] == {}


def test_a_grouping_tells_what_it_holds_while_it_runs_and_nothing_at_the_end() -> None:
    gate = Gate()
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(5000)), local_parallelism=1)
    last = dag.vertex("last", p.map(lambda n: n if n < 4999 else gate(n)), local_parallelism=1)
    group = dag.vertex("group", p.group_and_collect(abs, list, list.append), local_parallelism=1)
    dag.edge(between(numbers, last)).edge(from_(last).to(group).broadcast())
    with pyrite.instance(cooperative_threads=1) as pyr:
        execution = pyr.new_light_job(dag).execute()
        assert gate.reached.wait(10)
        held = execution.metrics()["group"]["held_bytes"]
        gate.opened.set()
        execution.result(10)
    assert held > 2000 * 88  # a list takes 88 bytes
    assert execution.metrics()["group"]["held_bytes"] == 0


def test_a_users_processor_may_tell_what_it_holds(pyr: Instance) -> None:
    class Keeps(AbstractProcessor):
        def try_process_0(self, item: object) -> None:
            self.spilled_bytes += 7

    dag = DAG()
    source, keeps = dag.vertex("source", p.read_items([1, 2])), dag.vertex("keeps", Keeps)
    execution = pyr.new_light_job(dag.edge(between(source, keeps))).execute()
    execution.result(10)
    assert execution.metrics()["keeps"]["spilled_bytes"] == 14


def test_a_users_processor_may_use_the_same_names_for_something_else(pyr: Instance) -> None:
    class Keeps(AbstractProcessor):
        held_bytes: Any = None

        def spilled_bytes(self) -> int:  # type: ignore[override]
            return 7

        def try_process_0(self, item: object) -> None: ...

    dag = DAG()
    source, keeps = dag.vertex("source", p.read_items([1])), dag.vertex("keeps", Keeps)
    bad = dag.vertex("bad", p.map(abs), on_error=pyrite.skip())
    dag.edge(between(source, bad)).edge(between(bad, keeps))
    execution = pyr.new_light_job(dag).execute()
    execution.result(10)
    assert execution.metrics()["keeps"]["spilled_bytes"] == 0


BATCH = pa.record_batch({"k": list(range(20_000)), "v": list(range(20_000))})


@pytest.mark.parametrize("budget", [None, 100_000])
def test_columnar_steps_tell_what_they_hold_and_have_spilled(budget: int | None) -> None:
    grouping = Grouping(group_spec(["k"], {"n": ("v", "sum")}, where=""), vertex="g", budget=budget)
    sorting = Sorting(sort_spec(["k"], where=""), budget=budget)
    joining = Joining(join_spec(["k"], ["k"], where=""), budget=budget)
    for start in range(0, BATCH.num_rows, 1000):
        grouping.add(BATCH[start : start + 1000])
        sorting.add(BATCH[start : start + 1000])
        joining.hold(BATCH[start : start + 1000])
    steps = (grouping, sorting, joining)
    if budget is None:
        assert all(step.held_bytes >= BATCH.nbytes for step in steps)
        assert all(step.spilled_bytes == 0 for step in steps)
    else:
        assert all(step.held_bytes <= budget for step in steps)
        made = [*grouping.results(), *sorting.results(), *joining.match(BATCH), *joining.rest()]
        assert sum(each.num_rows for each in made) == 3 * BATCH.num_rows
        assert all(step.spilled_bytes > BATCH.nbytes // 2 for step in steps)
    for step in steps:
        step.close()


def test_spilled_rows_are_in_the_metrics_of_the_job(pyr: Instance) -> None:
    dag = DAG()
    batches = dag.vertex("batches", p.read_items([BATCH]), local_parallelism=1)
    sort = dag.vertex("sort", p.sort_batches(["k"], memory=1), local_parallelism=1)
    execution = pyr.new_light_job(dag.edge(between(batches, sort))).execute()
    execution.result(10)
    assert execution.metrics()["sort"]["spilled_bytes"] > BATCH.nbytes // 2


def test_a_light_job_has_this_process_as_its_member() -> None:
    gate = Gate()
    dag = DAG()
    source, wait = dag.vertex("source", p.read_items([1])), dag.vertex("wait", p.map(gate))
    with pyrite.instance() as pyr:
        execution = pyr.new_light_job(dag.edge(between(source, wait))).execute()
        assert gate.reached.wait(10)
        (member,) = execution.members()
        gate.opened.set()
        execution.result(10)
    assert (member["member"], member["pid"]) == ("0", os.getpid())
    assert member["memory_bytes"] > 1 << 20
    assert member["host"]
    assert execution.members() == []


def test_the_state_of_a_step_is_estimated_while_it_changes() -> None:
    state: dict[int, list[int]] = {}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for n in range(1000):
                state[n] = [n]
            state.clear()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert all(about_bytes(state) > 0 for _ in range(2000))
    finally:
        stop.set()
        thread.join()


def metrics_of(counts: dict[str, int], seconds: float = 1.0, held: int = 5) -> VertexMetrics:
    total = sum(counts.values())
    numbers: Any = {
        "received": total,
        "emitted": 2 * total,
        "skipped": 0,
        "dead_letters": 1,
        "queue_fill": 3,
        "busy_seconds": seconds,
        "held_bytes": held,
        "spilled_bytes": 4,
        "done": 1,
    }
    edge: Any = {"received": total, "fill": 3, "capacity": 8}
    keys = sorted(counts.items(), key=lambda pair: -pair[1])
    vertex: Any = {
        **numbers,
        "processors": [dict(numbers)],
        "fused_with": [],
        "inbound": {"source": edge},
        "heaviest_keys": [("'source -> v'", k, n, n / total) for k, n in keys],
    }
    made: VertexMetrics = vertex
    return made


COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 100), min_size=1)


@given(COUNTS, COUNTS)
def test_plus_is_the_inverse_of_since(before: dict[str, int], more: dict[str, int]) -> None:
    later = {key: before.get(key, 0) + more.get(key, 0) for key in {**before, **more}}
    then, now = {"v": metrics_of(before)}, {"v": metrics_of(later, 3.0, 9)}
    found, expected = plus(then, since(now, then))["v"], now["v"]
    assert sorted(found.pop("heaviest_keys")) == sorted(expected.pop("heaviest_keys"))  # type: ignore[misc]
    assert found == expected


@given(COUNTS, COUNTS)
def test_keys_of_several_parts_are_added_up(one: dict[str, int], two: dict[str, int]) -> None:
    total = added_up([{"v": metrics_of(one)}, {"v": metrics_of(two)}], ["v"])["v"]
    counts = {key: count for _, key, count, _ in total["heaviest_keys"]}
    assert counts == {key: one.get(key, 0) + two.get(key, 0) for key in {**one, **two}}
    assert sum(share for *_, share in total["heaviest_keys"]) == pytest.approx(1)
    assert total["inbound"]["source"] == {
        "received": sum(one.values()) + sum(two.values()),
        "fill": 6,
        "capacity": 16,
    }
    assert (total["done"], len(total["processors"])) == (2, 2)


def test_without_times_equal_work_has_equal_metrics() -> None:
    assert without_times({"v": metrics_of({"a": 1}, 1.0, 5)}) == without_times(
        {"v": metrics_of({"a": 1}, 2.0, 6)}
    )


@given(st.floats(0, 9), st.floats(0, 9))
def test_times_of_the_longest_attempt_are_kept(one: float, two: float) -> None:
    reported, told = {"v": metrics_of({"a": 1}, one, 0)}, {"v": metrics_of({"a": 1}, two, 5)}
    assert with_times(reported, told) == {"v": metrics_of({"a": 1}, max(one, two), 0)}
    assert with_times(reported, {}) == reported


class Row(dict[str, int]):
    """A row of the user's, as of libraries with dicts of their own."""

    def items(self) -> Any:
        yield from super().items()

    def __len__(self) -> int:
        raise TypeError

    __iter__ = __reversed__ = __len__  # type: ignore[assignment]


class Rows(list[Row]):
    __iter__ = __len__ = __getitem__ = Row.__len__  # type: ignore[assignment]


def test_rows_of_any_class_can_be_held() -> None:
    row = Row(a=1)
    rows = {n: Rows([row]) for n in range(100)}
    assert about_bytes(rows) > 100 * (sys.getsizeof(row) + sys.getsizeof([]))
