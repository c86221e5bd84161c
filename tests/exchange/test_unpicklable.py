"""What cannot be pickled is named with the way to it, before anything is started."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, Instance, InvalidDAG, Pipeline, between, instance
from pyrite import processors as p
from pyrite.cluster.light.plans import PackedDag
from pyrite.exchange.serializable import check_serializable
from pyrite.exchange.unpicklable import find_unpicklable

LOCK = threading.Lock()


class Client:
    def __init__(self) -> None:
        self.name = "c"
        self._lock = threading.Lock()

    def get(self, item: Any) -> Any:
        return item


@dataclass
class Holder:
    clients: list[Client]


def closure(value: Any) -> Callable[[Any], Any]:
    def uses(item: Any) -> Any:
        return value, item

    return uses


def through_another(value: Any) -> Callable[[Any], Any]:
    inner = closure(value)
    return lambda item: inner(item)


FUNCTION = r"<function closure.<locals>.uses, test_unpicklable.py line \d+>"


@pytest.mark.parametrize(
    ("thing", "way"),
    [
        (closure(LOCK), f"^{FUNCTION} uses the variable `value`, a _thread.lock$"),
        (
            closure(Client()),
            f"^{FUNCTION} uses the variable `value`, whose attribute `_lock` is a _thread.lock$",
        ),
        (
            closure(Holder([Client()])),
            "the variable `value`, whose attribute `clients`, whose element 0, whose attribute "
            "`_lock` is a _thread.lock$",
        ),
        (closure({"a": LOCK}), "the variable `value`, whose value of 'a' is a _thread.lock$"),
        (
            through_another(LOCK),
            rf"through_another.* uses the variable `inner`, {FUNCTION}, which uses the variable "
            "`value`, a _thread.lock$",
        ),
        (lambda item: LOCK, "uses the global variable `LOCK`, a _thread.lock$"),
        (lambda item: [LOCK for _ in item], "uses the global variable `LOCK`, a _thread.lock$"),
        (lambda item, lock=LOCK: item, "uses the default of its argument `lock`, a _thread.lock$"),
        (lambda item, *, lock=LOCK: item, "the default of its argument `lock`, a _thread.lock$"),
        (Client().get, "the object <.*Client object.*>.*, whose attribute `_lock` is a"),
        (functools.partial(max, LOCK), "the argument 0 of <built-in function max> is a"),
        (functools.partial(max, key=LOCK), "the argument `key` of <built-in function max> is a"),
        (p.map(closure(LOCK)), f"^{FUNCTION} uses the variable `value`, a _thread.lock$"),
        (p.map(Client().get), "the object .*whose attribute `_lock` is a _thread.lock$"),
        (p.read_items([1, LOCK]), "^its argument `items`, whose element 1 is a _thread.lock$"),
        ([(1, LOCK)], "^the element 0, whose element 1 is a _thread.lock$"),
        (LOCK, "^<unlocked _thread.lock.* is a _thread.lock$"),
    ],
)
def test_the_way_to_it_is_named(thing: Any, way: str) -> None:
    found = find_unpicklable(thing)
    assert found is not None
    assert re.search(way, found.way), found.way


def test_a_class_of_the_users_is_walked_through() -> None:
    class Own(AbstractProcessor):
        def init(self, context: Any) -> None:
            self.lock = LOCK

    found = find_unpicklable(Own)
    assert found is not None
    assert found.value is LOCK
    assert "method `init` of <class" in found.way
    assert "uses the global variable `LOCK`" in found.way


def test_values_that_refer_to_themselves_end() -> None:
    around: list[Any] = []
    around.append(around)
    around.append(LOCK)
    found = find_unpicklable(around)
    assert found is not None
    assert found.value is LOCK


def test_what_can_be_pickled_has_no_culprit() -> None:
    assert find_unpicklable(closure(1)) is None


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ((n for n in [1]), "Use a list"),
        (LOCK, r"map_with\(service, fn\), inside the function, or in init\(\)"),
    ],
)
def test_the_error_says_what_to_do(value: Any, advice: str) -> None:
    dag = DAG()
    dag.vertex("v", p.map(closure(value)))
    with pytest.raises(InvalidDAG, match=advice):
        check_serializable(dag)


def test_an_open_file_is_to_be_opened_inside(tmp_path: Path) -> None:
    dag = DAG()
    with (tmp_path / "f").open("w") as file:
        dag.vertex("v", p.map(closure(file)))
        with pytest.raises(InvalidDAG, match=r"`value`, an? .*Open the file inside the function"):
            check_serializable(dag)


def test_a_step_of_a_pipeline_is_named_with_its_line() -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(closure(LOCK), name="enrich").write_to(p.noop())
    with pytest.raises(InvalidDAG) as info:
        check_serializable(pipe.to_dag())
    text = str(info.value)
    assert text.startswith("vertex 'enrich' (added in test_unpicklable.py line ")
    assert ") cannot be sent to Spark's workers: <function closure" in text
    assert "uses the variable `value`, a _thread.lock, which cannot be pickled (" in text


def test_the_key_of_an_edge_is_named() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.noop()), dag.vertex("b", p.noop())
    dag.edge(between(a, b).partitioned(closure(LOCK)))
    with pytest.raises(InvalidDAG, match=r"edge 'a -> b' cannot be sent .* variable `value`"):
        check_serializable(dag)


def test_a_light_job_in_this_process_may_use_anything(pyr: Instance) -> None:
    assert Pipeline().read_from([1]).map(closure(LOCK)).map(lambda t: t[1]).collect() == [1]


def test_a_durable_job_is_refused_when_it_is_submitted(tmp_path: Path) -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(closure(LOCK), name="enrich").write_to(p.write_list("out"))
    with instance(durable=tmp_path, peers=1) as pyr:
        job = pyr.new_durable_job(pipe)
        with pytest.raises(InvalidDAG, match=r"'enrich' \(added in .* peers .* `value`") as info:
            job.execute()
        assert str(info.value).count("added in ") == 1
        assert pyr.jobs() == []


def test_a_light_job_on_members_is_refused_when_it_is_packed() -> None:
    pipe = Pipeline()
    pipe.read_from(n for n in [1]).write_to(p.write_list("out"))
    with pytest.raises(
        InvalidDAG,
        match=r"'read_items' \(added in .* cannot be sent to the members: its argument `items` is "
        r"a generator, .* Use a list",
    ):
        PackedDag.of(pipe.to_dag())
