"""Each group and each execution starts from a value of its own, whatever the initial value is."""

from __future__ import annotations

import array
import copy
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyrite import DAG, Instance, InvalidDAG, between
from pyrite import processors as p
from pyrite.processors.groups.initial import maker_of


@dataclass
class Acc:
    items: list[int] = field(default_factory=list)

    def append(self, item: int) -> None:
        self.items.append(item)


def appended(acc: Any, item: int) -> Any:
    (acc["l"][0] if isinstance(acc, dict) else acc).append(item)
    return acc


INITIAL_VALUES: list[Any] = [Acc(), array.array("l"), deque(), {"l": [[]]}, []]


def contents(acc: Any) -> list[int]:
    return list(acc["l"][0] if isinstance(acc, dict) else getattr(acc, "items", acc))


@pytest.mark.parametrize("initial", INITIAL_VALUES, ids=repr)
def test_groups_and_executions_do_not_share_an_initial_value(pyr: Instance, initial: Any) -> None:
    before = copy.deepcopy(initial)
    dag = DAG()
    read = dag.vertex("read", p.read_items([1, 2, 1]))
    group = dag.vertex("group", p.group_and_accumulate(lambda x: x, initial, appended))
    dag.edge(between(read, group)).edge(between(group, dag.vertex("sink", p.write_map("out"))))
    for _ in range(2):
        pyr.new_light_job(dag).execute().result(10)
        assert {k: contents(v) for k, v in pyr.map("out").items()} == {1: [1, 1], 2: [2]}
    assert initial == before


@pytest.mark.parametrize("initial", INITIAL_VALUES, ids=repr)
def test_executions_of_accumulate_do_not_share_an_initial_value(
    pyr: Instance, initial: Any
) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([1, 2]))
    fold = dag.vertex("fold", p.accumulate(initial, appended))
    dag.edge(between(read, fold)).edge(between(fold, dag.vertex("sink", p.write_list("out"))))
    for _ in range(2):
        pyr.new_light_job(dag).execute().result(10)
    assert [contents(acc) for acc in pyr.list("out")] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("initial", [0, "", None, (0, 0), frozenset(), 1.5])
def test_a_value_that_cannot_change_is_not_copied(initial: Any) -> None:
    assert maker_of(initial) is None


def test_an_initial_value_that_cannot_be_copied_is_refused() -> None:
    with pytest.raises(
        InvalidDAG,
        match=r"initial of group_and_accumulate\(\) .*own copy.*lock.*group_and_collect",
    ):
        p.group_and_accumulate(lambda x: x, threading.Lock(), appended)
    with pytest.raises(InvalidDAG, match=r"initial of accumulate\(\) .*collect\(new_container"):
        p.accumulate((n for n in [1]), appended)
