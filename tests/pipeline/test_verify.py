"""`verify` says which vertex makes results depend on order, parallelism or chance, and gives no
false alarm."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    InvalidDAG,
    JobFailed,
    Pipeline,
    PyriteError,
    Retry,
    Stage,
    agg,
    between,
    dead_letter,
)
from pyrite import processors as p
from pyrite.pipeline import run
from pyrite.pipeline.looking.verifying import verified


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the Spark instance is shared by several tests, so its threads stay."""


def numbers(count: int = 50) -> Stage[int]:
    return Pipeline().read_from(range(count))


def by_three(stage: Stage[int]) -> Any:
    return stage.group_by(lambda n: n % 3)


def _odd(n: int) -> bool:
    return n % 2 == 1


class Running(AbstractProcessor):
    """Emits running totals, so that the order matters."""

    total = 0

    def try_process_0(self, item: int) -> None:
        self.total += item
        self.emit(self.total)


class TotalOfAll(AbstractProcessor):
    """Emits one total for each processor."""

    def __init__(self) -> None:
        self.total = 0

    def try_process_any(self, ordinal: int, item: int) -> None:
        self.total += item

    def complete(self) -> None:
        self.emit(self.total)


COUNTED = itertools.count()
WRONG = agg.Aggregate[int, int](int, lambda n, item: n + 1, lambda one, two: one)


@pytest.mark.parametrize(
    ("stage", "vertex", "cause"),
    [
        (lambda s: s.reduce(lambda a, b: a - b), "reduce", "order"),
        (lambda s: by_three(s).reduce(lambda a, b: a - b), "reduce", "order"),
        (lambda s: s.map(str).process(_Joined).map(len), "_joined", "order"),
        (lambda s: s.process(Running).map(str), "running", "order"),
        (lambda s: s.process(TotalOfAll).map(str), "total_of_all", "parallelism"),
        (lambda s: s.aggregate(WRONG), "aggregate", "parallelism"),
        (lambda s: s.aggregate(agg.count(), WRONG, agg.first()), "aggregate", "parallelism"),
        (lambda s: s.map(lambda n: (next(COUNTED), n)).map(str), "map", "chance"),
        (lambda s: by_three(s).map_groups(lambda k, ns: ns[:1]), "map_groups", "order"),
        (lambda s: s.limit(9).map(str).reduce(lambda a, b: a + b), "reduce", "order"),
        (lambda s: s.batch(4).map(tuple).reduce(lambda a, b: a + b).map(sum), None, None),
    ],
)
def test_the_vertex_is_named(
    stage: Callable[[Stage[int]], Stage[Any]], vertex: str | None, cause: str | None
) -> None:
    found = stage(numbers()).verify(40)
    assert found.vertices == (() if vertex is None else (vertex,))
    assert bool(found) is found.ok is (vertex is None)
    if vertex is not None:
        assert found.findings[0].cause == cause
        assert f"vertex '{vertex}' (added in test_verify.py line " in str(found.findings[0])


class _Joined(AbstractProcessor):
    """Emits the first item it gets, and drops the others."""

    has_emitted = False

    def try_process_0(self, item: Any) -> None:
        if not self.has_emitted:
            self.has_emitted = True
            self.emit("x" * int(item))


CLEAN: dict[str, Callable[[Stage[int]], Stage[Any]]] = {
    "word count": lambda s: s.map(str).group_by(len).count(),
    "join": lambda s: s.join(s, left=lambda n: n % 5, right=lambda n: n % 7, how="full"),
    "broadcast join": lambda s: s.join(s, left=str, right=str, broadcast=True),
    "union and distinct": lambda s: s.union(s).distinct(),
    "split": lambda s: Stage.union(*s.split(lambda n: n % 2)),
    "sort and limit": lambda s: s.sort().limit(3),
    "sort and top": lambda s: s.sort(reverse=True).top(3),
    "limit and count": lambda s: s.limit(3).count(),
    "groups in order": lambda s: by_three(s).map_groups(lambda k, ns: [min(ns)]),
    "aggregates": lambda s: by_three(s).aggregate(agg.to_set(), agg.min(), agg.count_distinct()),
    "batches that do not matter": lambda s: s.map_batches(lambda ns: [n + 1 for n in ns], size=4),
    "rebalance": lambda s: s.rebalance().rebalance(lambda n: n).map(str),
    "objects without ==": lambda s: s.map(lambda n: type("Own", (), {"n": n})()).map(vars),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_no_false_alarm(kind: str) -> None:
    found = CLEAN[kind](numbers()).verify(40)
    assert found.ok
    assert not found.notes
    assert str(found).startswith("All runs gave the same results.\n6 runs were compared: in order;")


@pytest.mark.parametrize(
    ("stage", "vertex", "why"),
    [
        (lambda s: s.limit(3), "limit", "any 3 items"),
        (lambda s: s.limit(3).map(str), "limit", "any 3 items"),
        (lambda s: s.sample(0.5), "sample", "which items sample"),
        (lambda s: s.batch(7), "batch", "in a list together"),
        (lambda s: s.map_batches(lambda ns: [sum(ns)], size=4), "map_batches-batch", "together"),
        (lambda s: s.top(3, key=lambda n: n // 10), "top", "equal keys"),
        (lambda s: by_three(s).top(3, key=lambda n: n // 20), "top", "equal keys"),
        (lambda s: s.distinct(lambda n: n % 4), "distinct", "any of the items"),
        (lambda s: s.aggregate(agg.count(), agg.first()), "aggregate", "any of the values"),
        (lambda s: s.aggregate(agg.to_dict(_odd, str)), "aggregate", "equal keys"),
        (lambda s: by_three(s).aggregate(agg.to_list()), "aggregate", "order of a list"),
        (
            lambda s: s.co_group(s, left=lambda n: n % 2, right=lambda n: n % 2),
            "co_group",
            "not specified",
        ),
        (
            lambda s: s.map(lambda n: n**0.5 * 1e9).aggregate(agg.sum(), agg.std()),
            "aggregate",
            "by rounding",
        ),
    ],
)
def test_what_a_step_leaves_open_is_a_note(
    stage: Callable[[Stage[int]], Stage[Any]], vertex: str, why: str
) -> None:
    found = stage(numbers()).verify(40)
    assert found.ok
    assert [note.vertex for note in found.notes] == [vertex]
    assert why in str(found.notes[0])


def test_several_vertices_are_found_also_after_one_another() -> None:
    stage = numbers().process(Running, name="first").map(str).process(_Joined, name="second")
    assert stage.verify(20).vertices == ("first", "second")


def test_a_fold_of_ones_own_that_combines_before_an_exchange_is_no_finding() -> None:
    stage = numbers().process(TotalOfAll, name="local")
    together = stage.process(TotalOfAll, name="all", edge=lambda e: e.distributed().all_to_one())
    assert not together.filter(bool).verify(20).findings


def test_dags_by_hand_are_verified() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items(range(9))), dag.vertex("b", Running)
    dag.edge(between(a, b)).edge(between(b, dag.vertex("c", p.write_list("never"))))
    assert verified(dag, 5, run.here).vertices == ("b",)


def test_an_error_is_reported_with_its_vertex_line_and_run() -> None:
    with pytest.raises(JobFailed, match=r"verify failed in vertex 'map'.* line \d+\)$") as info:
        numbers().map(lambda n: 1 / (n - 7)).filter(bool).verify()
    assert (info.value.item, info.value.edge) == (7, "'read_items -> map'")
    with pytest.raises(ZeroDivisionError):
        info.value.replay()

    class Fragile(Running):
        def try_process_0(self, item: int) -> None:
            super().try_process_0(item + 1 // (self.total + item - 49))

    with pytest.raises(JobFailed, match="verify, in reverse order, failed in vertex 'fragile'"):
        numbers().process(Fragile).map(str).verify()


def test_bad_records_are_skipped_in_every_run(tmp_path: Path) -> None:
    letters = dead_letter(p.write_files(tmp_path / "bad", "jsonl"), at_most=1)
    stage = Pipeline().read_from(["1", "x", "y"]).map(int, on_error=letters)
    assert stage.filter(bool).verify().ok
    assert not list(tmp_path.iterdir())


def test_samples_do_not_wait_before_they_try_again() -> None:
    waits: list[float] = []

    def wait(failures: int) -> float:
        waits.append(0.0)
        return waits[-1]

    tries = itertools.count()
    stage = numbers(3).map(lambda n: 1 // (next(tries) % 2), retry=Retry(1, wait=wait))
    assert stage.preview()["map"].items == (1, 1, 1)
    assert stage.verify(3).ok
    assert not waits
    assert stage.collect() == [1, 1, 1]
    assert len(waits) == 3


def test_steps_are_tried_again_in_samples_and_not_in_replays() -> None:
    tries: Counter[int] = Counter()

    def second_time(n: int) -> int:
        tries[n] += 1
        if tries[n] % 2:
            raise ValueError("first")
        return n

    again = Retry(2, wait=0)
    stage = numbers(3).map(second_time, retry=again)
    assert stage.preview()["map"].items == (0, 1, 2)
    assert stage.filter(bool).verify(3).ok
    with pytest.raises(JobFailed) as info:
        numbers(1).map(lambda n: 1 / n, retry=again).collect()
    with pytest.raises(ZeroDivisionError):
        info.value.replay()


def test_items_that_functions_change_are_the_same_in_each_run() -> None:
    items = [{"n": n} for n in range(5)]
    stage = Pipeline().read_from(items).map(lambda each: each.update(n=each["n"] + 1) or each)
    assert stage.map(dict).verify().ok
    assert items[0] == {"n": 0}


def test_endless_steps_are_refused() -> None:
    with pytest.raises(PyriteError, match="'flat_map' emits very many items"):
        numbers().flat_map(lambda n: itertools.count()).verify(1)
    with pytest.raises(InvalidDAG, match=r"n of verify\(\)"):
        numbers().verify(0)


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(["map", "filter", "group", "sort", "batch", "top"]), max_size=4),
    st.booleans(),
)
def test_a_bad_vertex_is_found_among_good_ones(steps: list[str], is_bad: bool) -> None:
    stage: Stage[Any] = numbers(20)
    for step in steps:
        stage = {
            "map": lambda s: s.map(lambda n: n + 1),
            "filter": lambda s: s.filter(lambda n: n % 5),
            "group": lambda s: s.group_by(lambda n: n % 4).count().map(lambda t: t[0] + 7 * t[1]),
            "sort": lambda s: s.sort(),
            "batch": lambda s: s.batch(3).flat_map(lambda ns: ns),
            "top": lambda s: s.top(12),
        }[step](stage)
    if is_bad:
        stage = stage.rebalance().process(Running, name="bad").map(str)
    found = stage.verify(20)
    assert set(found.vertices) <= {"bad"}
    assert is_bad or found.ok


def test_on_spark(local_spark: Instance) -> None:
    pipe = Pipeline()
    words = pipe.read_from(["a b", "b c"] * 4).flat_map(str.split)
    words.group_by(str.upper).count().write_to(p.write_list("never"))
    words.map(lambda word: word + str(_pid() == OWN_PID)).write_to(p.noop())
    before = {name for _, name, _ in local_spark.collections()}
    found = pipe.verify(5, on=local_spark)
    assert [(each.vertex, each.cause) for each in found.findings] == [("map", "spark")]
    assert found.runs[-1] == "on Spark"
    assert {name for _, name, _ in local_spark.collections()} == before


def _pid() -> int:
    import os

    return os.getpid()


OWN_PID = _pid()
