"""Suppliers and processors are initialized, called and closed the right number of times, also after
failures."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    JobFailed,
    JobStatus,
    MetaSupplierContext,
    ProcessorContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    SupplierContext,
    between,
)
from pyrite import processors as p

Events = list[tuple[str, Any]]


class Recorder:
    """Records its calls, and raises in the calls that the test chooses."""

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at
        self.events: Events = []

    def note(self, name: str, what: Any = None) -> None:
        self.events.append((name, what))
        if name == self.fails_at:
            raise ZeroDivisionError(name)

    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.events)

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


class RecordingProcessor(AbstractProcessor):
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def init(self, context: ProcessorContext) -> None:
        self.recorder.note("processor init", context)

    def try_process_0(self, item: Any) -> None:
        self.recorder.note("process", item)
        self.emit(item)

    def complete_edge(self, ordinal: int) -> None:
        self.recorder.note("complete edge", ordinal)

    def complete(self) -> None:
        self.recorder.note("complete")

    def close(self, error: BaseException | None) -> None:
        self.recorder.note("processor close", error)


class RecordingSupplier(ProcessorSupplier):
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def init(self, context: SupplierContext) -> None:
        self.recorder.note("supplier init", context)

    def get(self, count: int) -> Sequence[RecordingProcessor]:
        self.recorder.note("supplier get", count)
        return [RecordingProcessor(self.recorder) for _ in range(count)]

    def close(self, error: BaseException | None) -> None:
        self.recorder.note("supplier close", error)


class RecordingMetaSupplier(ProcessorMetaSupplier):
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def init(self, context: MetaSupplierContext) -> None:
        self.recorder.note("meta init", context)

    def get(self, addresses: Sequence[str]) -> Sequence[ProcessorSupplier]:
        self.recorder.note("meta get", addresses)
        return [RecordingSupplier(self.recorder) for _ in addresses]

    def commit(self) -> None:
        self.recorder.note("commit")

    def close(self, error: BaseException | None) -> None:
        self.recorder.note("meta close", error)


def recorded(supplier: Any, *, parallelism: int = 2) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(10)))
    middle = dag.vertex("middle", supplier, local_parallelism=parallelism)
    sink = dag.vertex("sink", p.write_list("out"))
    dag.edge(between(source, middle)).edge(between(middle, sink))
    return dag


EVERYTHING_ONCE = {
    "meta init": 1,
    "meta get": 1,
    "supplier init": 1,
    "supplier get": 1,
    "processor init": 2,
    "process": 10,
    "complete edge": 2,
    "complete": 2,
    "commit": 1,
    "processor close": 2,
    "supplier close": 1,
    "meta close": 1,
}


def test_a_job_that_completes_calls_everything_as_often_as_it_should(
    pyr_of_any_size: Instance,
) -> None:
    recorder = Recorder()
    pyr_of_any_size.new_light_job(recorded(RecordingMetaSupplier(recorder))).execute().result(10)
    assert recorder.counts() == EVERYTHING_ONCE
    names = recorder.names()
    assert names[:6] == [
        "meta init",
        "meta get",
        "supplier init",
        "supplier get",
        "processor init",
        "processor init",
    ]
    assert names[-5:] == [
        "commit",
        "processor close",
        "processor close",
        "supplier close",
        "meta close",
    ]
    assert all(error is None for name, error in recorder.events if name.endswith("close"))


@pytest.mark.parametrize(
    "fails_at", [name for name in EVERYTHING_ONCE if not name.endswith("close")]
)
def test_an_error_in_any_callback_fails_the_job_and_closes_what_was_made(
    pyr_of_any_size: Instance, fails_at: str
) -> None:
    recorder = Recorder(fails_at)
    with pytest.raises(JobFailed) as failed:
        pyr_of_any_size.new_light_job(recorded(RecordingMetaSupplier(recorder))).execute().result(
            10
        )
    assert failed.value.vertex == "middle"
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    order = list(EVERYTHING_ONCE)
    reached = order.index(fails_at)
    counts = recorder.counts()
    assert counts["meta close"] == 1
    assert counts["supplier close"] == (1 if reached >= order.index("supplier init") else 0)
    assert counts["processor close"] == (2 if reached >= order.index("processor init") else 0)
    assert counts["commit"] == (fails_at == "commit")
    assert all(
        counts[name] == 0
        for name in order[reached + 1 : order.index("commit")]
        if name not in ("complete edge", "complete")
    )
    assert all(
        isinstance(error, JobFailed) for name, error in recorder.events if name.endswith("close")
    )
    assert (
        pyr_of_any_size.new_light_job(recorded(lambda: RecordingProcessor(Recorder())))
        .execute()
        .result(10)
        is None
    )


@pytest.mark.parametrize("fails_at", ["processor close", "supplier close", "meta close"])
def test_what_close_raises_is_logged_and_not_fatal(
    pyr: Instance, fails_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(fails_at)
    execution = pyr.new_light_job(recorded(RecordingMetaSupplier(recorder))).execute()
    execution.result(10)
    assert execution.status is JobStatus.COMPLETED
    assert recorder.counts() == EVERYTHING_ONCE
    assert "in vertex 'middle' raised" in caplog.text


def test_contexts_tell_who_and_where(pyr: Instance) -> None:
    recorder = Recorder()
    job = pyr.new_light_job(recorded(RecordingMetaSupplier(recorder)))
    execution = job.execute()
    execution.result(10)
    contexts = {name: context for name, context in recorder.events if name.endswith("init")}
    for context in contexts.values():
        assert context.vertex_name == "middle"
        assert (context.local_parallelism, context.total_parallelism, context.member_count) == (
            2,
            2,
            1,
        )
        assert (context.job_id, context.execution_id) == (job.id, execution.id)
        assert isinstance(context.logger, logging.Logger)
    assert contexts["supplier init"].member_index == 0
    indexes = [
        (c.local_index, c.global_index) for name, c in recorder.events if name == "processor init"
    ]
    assert indexes == [(0, 0), (1, 1)]


def test_the_global_index_counts_over_members() -> None:
    context = ProcessorContext(
        vertex_name="v",
        local_parallelism=3,
        member_count=4,
        job_id="j",
        execution_id="e",
        collections=None,  # type: ignore[arg-type]
        member_index=2,
        local_index=1,
    )
    assert (context.global_index, context.total_parallelism) == (7, 12)


class Wrong(ProcessorSupplier):
    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def get(self, count: int) -> Any:
        return self.make(count)


class WrongMeta(ProcessorMetaSupplier):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def get(self, addresses: Sequence[str]) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("supplier", "message"),
    [
        (Wrong(lambda count: []), "must return exactly 2 processors; got 0"),
        (
            Wrong(lambda count: [AbstractProcessor() for _ in range(3)]),
            "must return exactly 2 processors; got 3",
        ),
        (Wrong(lambda count: None), "must return a list of 2 processors; got None"),
        (Wrong(lambda count: [AbstractProcessor()] * 2), "the same processor twice"),
        (Wrong(lambda count: ["x", "y"]), "must make Processors; got 'x'"),
        (lambda: 3, r"the supplier of vertex 'middle', <function .* must make Processors; got 3"),
        (WrongMeta([]), "one ProcessorSupplier for each of 1 members"),
        (WrongMeta([3]), "must return ProcessorSuppliers; got 3"),
        (WrongMeta({"nobody": 3}), "must return ProcessorSuppliers; got None"),
    ],
)
def test_a_supplier_that_answers_wrongly_fails_the_job_with_a_sentence(
    pyr: Instance, supplier: Any, message: str
) -> None:
    with pytest.raises(JobFailed, match=message) as failed:
        pyr.new_light_job(recorded(supplier)).execute().result(10)
    assert failed.value.vertex == "middle"


def test_a_meta_supplier_may_answer_by_address(pyr: Instance) -> None:
    class ByAddress(ProcessorMetaSupplier):
        def get(self, addresses: Sequence[str]) -> dict[str, ProcessorSupplier]:
            return {address: RecordingSupplier(Recorder()) for address in addresses}

    pyr.new_light_job(recorded(ByAddress())).execute().result(10)
    assert sorted(pyr.list("out")) == list(range(10))
