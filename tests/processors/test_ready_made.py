"""Every ready-made processor holds under the harness: any inbox, any outbox, state saved and
restored."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from pyrite import DAG, Instance, InvalidDAG, JobFailed, between
from pyrite import processors as p
from pyrite.collections import MemoryCollections, MemoryList, MemoryMap
from pyrite.context import ProcessorContext
from pyrite.engine.member import RunContext
from pyrite.testing import verify_processor

NUMBERS = list(range(10))


def test_map() -> None:
    verify_processor(p.map(lambda n: n * 2), NUMBERS, [n * 2 for n in NUMBERS])


def test_filter() -> None:
    verify_processor(p.filter(lambda n: n % 2), NUMBERS, [1, 3, 5, 7, 9])


def test_flat_map() -> None:
    verify_processor(p.flat_map(range), [3, 0, 1], [0, 1, 2, 0])


def test_noop() -> None:
    verify_processor(p.noop(), ["a", "b"], ["a", "b"])
    verify_processor(p.noop(), {0: ["a"], 1: ["b"]}, ["a", "b"])


def test_accumulate() -> None:
    verify_processor(p.accumulate(0, lambda total, n: total + n), NUMBERS, [45])
    verify_processor(p.accumulate(0, lambda total, n: total + n), [], [0])


def test_collect() -> None:
    verify_processor(p.collect(list, list.append), NUMBERS, [NUMBERS])


def test_group_and_accumulate() -> None:
    words = ["a", "b", "a", "c", "a"]
    count = p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    verify_processor(count, words, [("a", 3), ("b", 1), ("c", 1)])
    verify_processor(count, [], [])


def test_group_and_accumulate_with_finish() -> None:
    count = p.group_and_accumulate(
        lambda w: w, 0, lambda n, w: n + 1, finish=lambda key, n: f"{key}{n}"
    )
    verify_processor(count, "abca", ["a2", "b1", "c1"])


def test_group_and_collect() -> None:
    group = p.group_and_collect(lambda n: n % 3, list, list.append)
    verify_processor(group, NUMBERS, [(0, [0, 3, 6, 9]), (1, [1, 4, 7]), (2, [2, 5, 8])])


def test_group_and_collect_with_finish() -> None:
    group = p.group_and_collect(
        lambda n: n % 3, list, list.append, finish=lambda key, items: sum(items)
    )
    verify_processor(group, NUMBERS, [18, 12, 15])


def test_count_distinct() -> None:
    verify_processor(p.count_distinct(lambda w: w.lower()), ["a", "A", "b"], [2])


def test_read_items() -> None:
    verify_processor(p.read_items(NUMBERS), [], NUMBERS)
    verify_processor(p.read_items({"a": 1}), [], ["a"])


def test_read_and_write_collections() -> None:
    collections = MemoryCollections()
    verify_processor(p.write_list("l"), NUMBERS, [], collections=collections)
    assert list(collections.list("l")) == NUMBERS * 4  # one run for each way of calling it
    verify_processor(p.write_map("m"), [("a", 1), ["b", 2]], [], collections=collections)
    assert dict(collections.map("m")) == {"a": 1, "b": 2}
    verify_processor(p.read_map("m"), [], [("a", 1), ("b", 2)], collections=collections)
    verify_processor(p.read_list("l"), [], NUMBERS * 4, collections=collections)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (lambda: p.read_items(range(100)), list(range(100))),
        (lambda: p.read_items(list(range(5))), list(range(5))),
        (lambda: p.read_items({n: n for n in range(50)}), list(range(50))),
        (lambda: p.read_items(set(range(50))), list(range(50))),
        (lambda: p.read_items(n for n in range(50)), list(range(50))),
        (lambda: p.read_list("numbers"), list(range(30))),
        (lambda: p.read_map("numbers"), [(n, n) for n in range(30)]),
    ],
)
def test_a_source_emits_each_item_once_whatever_the_parallelism(
    pyr: Instance, source: Any, expected: list[Any], parallelism: int
) -> None:
    pyr.list("numbers").extend(range(30))
    pyr.map("numbers").update({n: n for n in range(30)})
    dag = DAG()
    read = dag.vertex("read", source(), local_parallelism=parallelism)
    dag.edge(between(read, dag.vertex("sink", p.write_list("out"), local_parallelism=1)))
    pyr.new_light_job(dag).execute().result(10)
    assert sorted(pyr.list("out")) == expected


class Changing(MemoryCollections):
    """Before each use of a map or list, something is added at its start."""

    def map(self, name: str) -> MemoryMap:
        found = super().map(name)
        before = found.copy()
        found.clear()
        found.update({-len(before): 0, **before})
        return found

    def list(self, name: str) -> MemoryList:
        found = super().list(name)
        found.insert(0, -len(found))
        return found


@pytest.mark.parametrize("source", [p.read_list("c"), p.read_map("c")])
def test_all_processors_of_a_source_read_one_copy_of_what_changes(source: Any) -> None:
    collections = Changing()
    for _ in range(10):
        collections.map("c"), collections.list("c")
    run = RunContext(
        job_name="", job_id="", execution_id="", member_count=1, collections=collections
    )
    items: list[Any] = []
    for index in range(3):
        context = ProcessorContext(
            **run.fields("v", 3), member_index=0, local_index=index, once=run.once
        )
        items += source.step.open(context)
    assert len(items) == len(set(items)) == 11


def test_an_iterator_can_be_read_by_one_job_only(pyr: Instance) -> None:
    dag = DAG()
    dag.edge(
        between(
            dag.vertex("read", p.read_items(iter([1, 2]))), dag.vertex("sink", p.write_list("out"))
        )
    )
    pyr.new_light_job(dag).execute().result(10)
    with pytest.raises(
        JobFailed,
        match=r"vertex 'read' reads .*, an iterator that an earlier execution has used up",
    ):
        pyr.new_light_job(dag).execute().result(10)
    assert list(pyr.list("out")) == [1, 2]


@pytest.mark.parametrize("item", [3, "ab", (1,), (1, 2, 3), ([], 1)])
def test_a_map_takes_pairs_only(pyr: Instance, item: Any) -> None:
    dag = DAG()
    dag.edge(
        between(
            dag.vertex("read", p.read_items([("a", 1), item])), dag.vertex("sink", p.write_map("m"))
        )
    )
    with pytest.raises(
        JobFailed, match=r"vertex 'sink' cannot put item .* into a map: it"
    ) as failed:
        pyr.new_light_job(dag).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == ("sink", item)


@pytest.mark.parametrize(
    "make",
    [
        lambda: p.map(3),  # type: ignore[arg-type]
        lambda: p.filter(None),  # type: ignore[arg-type]
        lambda: p.flat_map("x"),  # type: ignore[arg-type]
        lambda: p.read_items(3),  # type: ignore[arg-type]
        lambda: p.read_map(""),
        lambda: p.write_list(None),  # type: ignore[arg-type]
        lambda: p.accumulate(0, 0),  # type: ignore[arg-type]
        lambda: p.collect([], list.append),  # type: ignore[arg-type]
        lambda: p.group_and_accumulate("key", 0, max),  # type: ignore[arg-type]
        lambda: p.group_and_collect(len, list, list.append, finish=3),  # type: ignore[arg-type]
        lambda: p.read_files("x", format="xml"),
        lambda: p.write_files("", format="csv"),
    ],
)
def test_bad_arguments_are_refused_when_they_are_given(make: Any) -> None:
    with pytest.raises(InvalidDAG, match="got "):
        make()


@pytest.mark.parametrize("key", [lambda x: [x], lambda x: numpy.array([x])])
@pytest.mark.parametrize(
    "fold", [lambda key: p.group_and_collect(key, list, list.append), p.count_distinct]
)
def test_a_key_without_a_hash_is_refused_with_its_function(
    pyr: Instance, key: Any, fold: Any
) -> None:
    dag = DAG()
    read, group = dag.vertex("read", p.read_items([1])), dag.vertex("group", fold(key))
    dag.edge(between(read, group)).edge(between(group, dag.vertex("sink", p.write_list("out"))))
    with pytest.raises(
        JobFailed, match=r"'group'.* key function <function .*> must be hashable.*Return a tuple"
    ) as failed:
        pyr.new_light_job(dag).execute().result(10)
    assert failed.value.item == 1
