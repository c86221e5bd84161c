"""A wait that could never end is refused, and closing never waits for its own caller."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pyrite
from pyrite import DAG, AbstractProcessor, Instance, JobFailed, PyriteError, between
from pyrite import processors as p
from tests.engine.test_cancel_and_failure import Forever, works

Act = Callable[[Instance], Any]


def inner(pyr: Instance) -> pyrite.Execution:
    dag = DAG()
    dag.edge(between(dag.vertex("a", p.read_items([1])), dag.vertex("b", p.write_list("inner"))))
    return pyr.new_light_job(dag).execute()


class Calls(AbstractProcessor):
    def __init__(self, act: Callable[[], Any], *, cooperative: bool = True) -> None:
        self.act = act
        self.cooperative = cooperative

    def try_process_0(self, item: Any) -> None:
        self.act()


def places(act: Callable[[], Any]) -> dict[str, tuple[Any, Any]]:
    """Suppliers of a vertex, and keys of the edge to it, that act on a cooperative thread."""

    def call(*arguments: Any) -> Any:
        act()
        return 1

    return {
        "map": (p.map(call), None),
        "flat_map": (p.flat_map(lambda n: [call()]), None),
        "generator": (p.flat_map(lambda n: (call() for _ in range(2))), None),
        "accumulate": (p.accumulate(0, call), None),
        "finish": (p.group_and_accumulate(lambda n: n, 0, lambda a, n: a, call), None),
        "custom processor": (lambda: Calls(act), None),
        "key": (p.noop(), call),
    }


PLACES = list(places(lambda: None))


def dag_that(place: str, act: Callable[[], Any], parallelism: int = 1) -> DAG:
    supplier, key = places(act)[place]
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]), local_parallelism=1)
    bad = dag.vertex("bad", supplier, local_parallelism=parallelism)
    edge = between(source, bad)
    return dag.edge(edge.partitioned(key=key) if key else edge)


WAITS: dict[str, Callable[[Any], Any]] = {
    "result": lambda execution: execution.result(),
    "result with a timeout": lambda execution: execution.result(60),
    "exception": lambda execution: execution.exception(),
    "wait": lambda execution: concurrent.futures.wait([execution]),
    "as_completed": lambda execution: next(concurrent.futures.as_completed([execution])),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("place", PLACES)
def test_waiting_on_a_cooperative_thread_of_the_same_instance_is_refused(
    pyr_of_any_size: Instance, place: str, wait: str
) -> None:
    waited_for: list[pyrite.Execution] = []

    def act() -> None:
        waited_for.append(inner(pyr_of_any_size))
        WAITS[wait](waited_for[0])

    with pytest.raises(JobFailed, match="cannot be waited for on a cooperative thread") as failed:
        pyr_of_any_size.new_light_job(dag_that(place, act, 2)).execute().result(10)
    assert isinstance(failed.value.__cause__, PyriteError)
    waited_for[0].result(10)  # it runs all the same
    assert works(pyr_of_any_size)


def test_a_job_cannot_wait_for_itself(pyr: Instance) -> None:
    started = threading.Event()
    executions: list[pyrite.Execution] = []

    def act() -> None:
        assert started.wait(10)
        executions[0].result()

    executions.append(pyr.new_light_job(dag_that("map", act)).execute())
    started.set()
    with pytest.raises(JobFailed, match="cannot be waited for"):
        executions[0].result(10)


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_job_may_be_looked_at_without_waiting(pyr: Instance, timeout: float) -> None:
    seen: list[Any] = []

    def act() -> None:
        execution = inner(pyr)
        try:
            execution.result(timeout)
        except concurrent.futures.TimeoutError as error:
            seen.append(error)

    pyr.new_light_job(dag_that("map", act)).execute().result(10)
    assert len(seen) == 1


def test_a_job_that_has_ended_may_be_waited_for_anywhere(pyr: Instance) -> None:
    ended = inner(pyr)
    ended.result(10)
    other: concurrent.futures.Future[None] = concurrent.futures.Future()
    threading.Timer(0.01, other.set_result, [None]).start()

    def act() -> None:
        ended.result()
        assert concurrent.futures.wait([ended, other], timeout=10).not_done == set()

    pyr.new_light_job(dag_that("map", act)).execute().result(10)


def test_a_job_of_another_instance_may_be_waited_for(pyr: Instance) -> None:
    with pyrite.instance() as other:
        pyr.new_light_job(dag_that("map", lambda: inner(other).result())).execute().result(10)


def test_a_processor_with_a_thread_of_its_own_may_wait(pyr_of_any_size: Instance) -> None:
    dag = DAG()
    waits = dag.vertex(
        "waits", lambda: Calls(lambda: inner(pyr_of_any_size).result(10), cooperative=False)
    )
    dag.edge(between(dag.vertex("source", p.read_items([1, 2, 3])), waits))
    pyr_of_any_size.new_light_job(dag).execute().result(10)
    assert list(pyr_of_any_size.list("inner")) == [1, 1, 1]


def test_the_init_of_a_processor_may_wait(pyr_of_any_size: Instance) -> None:
    class Waits(AbstractProcessor):
        def init(self, context: Any) -> None:
            inner(pyr_of_any_size).result(10)

    dag = DAG()
    dag.vertex("waits", Waits, local_parallelism=1)
    pyr_of_any_size.new_light_job(dag).execute().result(10)
    assert list(pyr_of_any_size.list("inner")) == [1]


@pytest.fixture
def own() -> Iterator[Instance]:
    """An instance that the test may close."""
    instance = pyrite.instance(cooperative_threads=2)
    yield instance
    instance.close()


@pytest.mark.parametrize("place", [*PLACES, "a thread of its own", "callback", "init"])
def test_closing_the_instance_from_a_job_of_it_returns_at_once(own: Instance, place: str) -> None:
    forever = DAG()
    forever.vertex("forever", Forever)
    other = own.new_light_job(forever).execute()
    took: list[float] = []

    def close() -> None:
        started = time.monotonic()
        own.close()
        took.append(time.monotonic() - started)

    if place == "callback":
        called = threading.Event()
        inner(own).add_done_callback(lambda _: (close(), called.set()))
        assert called.wait(10)
    else:
        own.new_light_job(closing(place, close)).execute().exception(10)
    own.close()  # waits until all has stopped
    assert took
    assert max(took) < 1
    assert other.cancelled()
    with pytest.raises(PyriteError, match="closed"):
        inner(own)


def closing(place: str, close: Callable[[], None]) -> DAG:
    class ClosesInInit(AbstractProcessor):
        def init(self, context: Any) -> None:
            close()

    if place in PLACES:
        return dag_that(place, close)
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]), local_parallelism=1)
    supplier: Any = ClosesInInit if place == "init" else lambda: Calls(close, cooperative=False)
    return dag.edge(between(source, dag.vertex("closes", supplier, local_parallelism=1)))


def test_a_second_close_waits_for_the_first(own: Instance) -> None:
    """Whoever leaves a `with` block may rely on it that nothing runs any more."""
    entered, may_go_on = threading.Event(), threading.Event()

    def slow() -> None:
        own.close()
        entered.set()
        assert may_go_on.wait(10)

    execution = own.new_light_job(dag_that("map", slow)).execute()
    assert entered.wait(10)
    assert not execution.done()
    threading.Timer(0.05, may_go_on.set).start()
    own.close()
    assert execution.done()
