"""A job can be cancelled at every stage, its errors say where it failed, and the instance works
afterwards."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

import pytest

import pyrite
from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    JobCancelled,
    JobFailed,
    JobStatus,
    Processor,
    PyriteError,
    between,
    from_,
)
from pyrite import processors as p
from tests.engine.test_life_cycle import Recorder, RecordingMetaSupplier, recorded


def works(pyr: Instance) -> bool:
    dag = DAG()
    dag.edge(
        between(
            dag.vertex("source", p.read_items([1, 2])), dag.vertex("sink", p.write_list("works"))
        )
    )
    pyr.list("works").clear()
    pyr.new_light_job(dag).execute().result(10)
    return sorted(pyr.list("works")) == [1, 2]


class Gate:
    """Stops a job at one point until the test opens the gate."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(10)


STAGES = [
    "meta init",
    "meta get",
    "supplier init",
    "supplier get",
    "processor init",
    "process",
    "complete edge",
    "complete",
]


@pytest.mark.parametrize("stage", STAGES)
def test_cancel_at_every_stage_closes_everything_once(
    pyr_of_any_size: Instance, stage: str
) -> None:
    gate = Gate()

    class Gated(Recorder):
        def note(self, name: str, what: Any = None) -> None:
            super().note(name, what)
            if name == stage and not gate.reached.is_set():
                gate()

    recorder = Gated()
    execution = pyr_of_any_size.new_light_job(recorded(RecordingMetaSupplier(recorder))).execute()
    assert gate.reached.wait(10)
    assert execution.cancel()
    assert not execution.done()  # a processor is still at work
    gate.opened.set()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert (execution.status, execution.cancelled(), execution.cancel()) == (
        JobStatus.CANCELLED,
        True,
        False,
    )
    counts = recorder.counts()
    assert (
        counts["processor close"],
        counts["supplier close"],
        counts["meta close"],
        counts["commit"],
    ) == (2, 1, 1, 0)
    assert all(
        isinstance(error, JobCancelled) for name, error in recorder.events if name.endswith("close")
    )
    assert works(pyr_of_any_size)


def test_cancel_before_the_start_means_that_it_never_starts(pyr: Instance) -> None:
    recorder = Recorder()
    gate = Gate()

    def run_behind_the_gate(call: Callable[[], None]) -> None:
        threading.Thread(target=lambda: (gate(), call())).start()

    pyr._service.threads.run = run_behind_the_gate  # type: ignore[method-assign]
    execution = pyr.new_light_job(recorded(RecordingMetaSupplier(recorder))).execute()
    assert gate.reached.wait(10)
    assert execution.status is JobStatus.STARTING
    execution.cancel()
    gate.opened.set()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert recorder.events == []


class Forever(Processor):
    def complete(self) -> bool:
        return False


class BusyForever(AbstractProcessor):
    def complete(self) -> bool:
        self.emit("more")
        return False


class BlocksForAWhile(Processor):
    cooperative = False

    def complete(self) -> bool:
        threading.Event().wait(0.05)
        return False


@pytest.mark.parametrize("kind", [Forever, BusyForever, BlocksForAWhile])
def test_a_processor_that_never_completes_can_be_cancelled(
    pyr_of_any_size: Instance, kind: type[Processor]
) -> None:
    dag = DAG()
    dag.edge(
        between(dag.vertex("forever", kind, local_parallelism=3), dag.vertex("sink", p.noop()))
    )
    execution = pyr_of_any_size.new_light_job(dag).execute()
    with pytest.raises(TimeoutError):
        execution.result(0.05)
    execution.cancel()
    with pytest.raises(JobCancelled, match="was cancelled"):
        execution.result(5)
    assert works(pyr_of_any_size)


def test_closing_the_instance_cancels_what_runs() -> None:
    dag = DAG()
    dag.vertex("forever", Forever)
    with pyrite.instance() as pyr:
        execution = pyr.new_light_job(dag).execute()
    assert execution.cancelled()
    with pytest.raises(PyriteError, match="closed"):
        pyr.new_light_job(dag).execute()


def failing(supplier: Any, items: list[Any] | None = None) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(items if items is not None else [1, 2, 3]))
    bad = dag.vertex("bad", supplier)
    dag.edge(between(source, bad)).edge(between(bad, dag.vertex("sink", p.noop())))
    return dag


def test_a_failure_says_vertex_processor_edge_item_and_cause(pyr: Instance) -> None:
    class Picky(AbstractProcessor):
        def try_process_0(self, item: Any) -> None:
            if item == 2:
                raise ValueError("no twos")

    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(failing(Picky)).execute().result(10)
    error = failed.value
    message = str(error).split(" ", 3)[3]
    assert message.startswith(
        "failed in vertex 'bad', processor 0, edge 'source -> bad', item 2: ValueError: no twos "
        "(the step was added in "
    )
    assert (error.vertex, error.processor, error.edge, error.item) == (
        "bad",
        0,
        "'source -> bad'",
        2,
    )
    assert isinstance(error.__cause__, ValueError)
    assert works(pyr)


class Raw(Processor):
    def process(self, ordinal: int, inbox: Any) -> None:
        for item in inbox:
            if item == 3:
                raise KeyError(item)


class EmitsNone(AbstractProcessor):
    def try_process_0(self, item: Any) -> None:
        self.emit(None)


class AnswersWrongly(AbstractProcessor):
    def complete(self) -> Any:
        return 1

    def try_process_0(self, item: Any) -> None:
        pass


class Exits(AbstractProcessor):
    def try_process_0(self, item: Any) -> None:
        raise SystemExit(3)


class NoSuchEdge(AbstractProcessor):
    def try_process_0(self, item: Any) -> None:
        self.emit(item, 5)


@pytest.mark.parametrize(
    ("supplier", "message", "item"),
    [
        (Raw, "KeyError: 3", 3),
        (EmitsNone, "vertex 'bad' emitted None", 1),
        (
            AnswersWrongly,
            r"return value of <function AnswersWrongly.complete, .*> must be a bool or None; got 1",
            None,
        ),
        (Exits, "SystemExit: 3", 1),
        (NoSuchEdge, "emitted to ordinal 5, but it has 1 outbound edge", 1),
        (AbstractProcessor, "defines neither try_process_0 nor try_process_any", 1),
    ],
)
def test_a_processor_that_misbehaves_fails_its_job_and_nothing_else(
    pyr: Instance, supplier: Any, message: str, item: Any
) -> None:
    with pytest.raises(JobFailed, match=message) as failed:
        pyr.new_light_job(failing(supplier)).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == ("bad", item)
    assert works(pyr)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_bad_key_on_an_edge_names_the_edge_and_the_item(pyr: Instance, parallelism: int) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([{"k": 1}, {"k": None}]), local_parallelism=1)
    sink = dag.vertex("sink", p.write_list("out"), local_parallelism=parallelism)
    dag.edge(between(source, sink).partitioned(key=lambda item: item["k"]))
    with pytest.raises(JobFailed, match="'source -> sink'") as failed:
        pyr.new_light_job(dag).execute().result(10)
    assert failed.value.item == {"k": None}
    assert failed.value.edge == "'source -> sink'"


def test_a_failure_stops_the_other_vertices(pyr: Instance) -> None:
    dag = DAG()
    endless = dag.vertex("endless", BusyForever)
    join = dag.vertex("join", p.noop())
    bad = dag.vertex("bad", p.map(lambda n: 1 // n))
    dag.edge(from_(endless).to(join))
    dag.edge(between(dag.vertex("source", p.read_items([0])), bad))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(10)


def test_a_failed_job_pickles_with_its_cause() -> None:
    import pickle

    error = JobFailed("m", vertex="v", processor=1, edge="e", item=2)
    error.__cause__ = ValueError("x")
    restored = pickle.loads(pickle.dumps(error))
    assert (str(restored), restored.vertex, restored.item, str(restored.__cause__)) == (
        "m",
        "v",
        2,
        "x",
    )


def test_an_execution_is_a_future(pyr: Instance) -> None:
    called = threading.Event()
    execution = pyr.new_light_job(failing(p.map(lambda n: n))).execute()
    execution.add_done_callback(lambda done: called.set())
    assert concurrent.futures.wait([execution], timeout=10).done == {execution}
    assert called.wait(5)
    assert execution.done()
    assert execution.exception() is None
    assert execution.status is JobStatus.COMPLETED
    assert not execution.cancelled()
    assert not execution.cancel()


def test_an_execution_can_be_awaited(pyr: Instance) -> None:
    async def main() -> None:
        await asyncio.wrap_future(pyr.new_light_job(failing(p.noop())).execute())

    asyncio.run(main())
