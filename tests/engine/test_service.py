"""Workers call their tasklets in turn, steal one only from a worker that has two more, and sleep
when there is no work."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import DAG, AbstractProcessor, Instance, Processor, ProcessorContext, between
from pyrite import processors as p
from pyrite.engine.failure import Halt
from pyrite.engine.service import ExecutionService
from pyrite.engine.stealing import worker_to_rob
from pyrite.engine.tasklets import DONE_NOW, IDLE, PROGRESS, Tasklet


class Script(Tasklet):
    """A tasklet that returns the result of a function, and records which thread called it."""

    def __init__(self, answer: Callable[[], int]) -> None:
        super().__init__(Halt())
        self.answer = answer
        self.threads: set[str] = set()
        self.calls = 0

    def call(self) -> int:
        self.calls += 1
        self.threads.add(threading.current_thread().name)
        return self.answer()


@pytest.fixture(params=[1, 2, 4], ids=lambda size: f"pool of {size}")
def service(request: pytest.FixtureRequest) -> Iterator[ExecutionService]:
    service = ExecutionService(request.param)
    yield service
    service.close()


class Countdown:
    """Waits until a number of tasklets are done."""

    def __init__(self, count: int) -> None:
        self.left = threading.Semaphore(0)
        self.count = count

    def done(self, tasklet: Tasklet) -> None:
        self.left.release()

    def wait(self) -> None:
        for _ in range(self.count):
            assert self.left.acquire(timeout=20)


def counting(calls: int) -> Callable[[], int]:
    left = iter(range(calls - 1, -1, -1))
    return lambda: PROGRESS if next(left) else DONE_NOW


def test_a_hundred_tasklets_are_called_a_thousand_times_each(service: ExecutionService) -> None:
    tasklets = [Script(counting(1000)) for _ in range(100)]
    countdown = Countdown(100)
    service.submit(tasklets, countdown.done)
    countdown.wait()
    assert [tasklet.calls for tasklet in tasklets] == [1000] * 100


def test_tasklets_take_turns() -> None:
    service = ExecutionService(1)
    order: list[int] = []
    countdown = Countdown(3)
    tasklets = []
    for i in range(3):
        left = iter(range(4, -1, -1))
        tasklets.append(
            Script(
                lambda i=i, left=left: (  # type: ignore[misc]
                    order.append(i),
                    PROGRESS if next(left) else DONE_NOW,
                )[1]
            )
        )
    service.submit(tasklets, countdown.done)
    countdown.wait()
    service.close()
    assert order == [0, 1, 2] * 5


def test_tasklets_start_evenly_spread() -> None:
    service = ExecutionService(4)
    gate = threading.Event()
    tasklets = [Script(lambda: DONE_NOW if gate.is_set() else IDLE) for _ in range(8)]
    countdown = Countdown(8)
    service.submit(tasklets, countdown.done)
    while not all(tasklet.calls for tasklet in tasklets):
        pass
    assert [len(worker.entries) for worker in service.workers] == [2, 2, 2, 2]
    gate.set()
    countdown.wait()
    service.close()


def test_work_is_stolen_from_the_worker_that_has_most() -> None:
    """Worker 0 gets the short tasklets and worker 1 the long ones: the short ones end, and long
    ones move over."""
    service = ExecutionService(2)
    gate = threading.Event()
    long = [Script(lambda: DONE_NOW if gate.is_set() else PROGRESS) for _ in range(4)]
    short = [
        Script(lambda: DONE_NOW if all(tasklet.calls for tasklet in long) else PROGRESS)
        for _ in range(4)
    ]
    countdown = Countdown(8)
    service.submit([tasklet for pair in zip(short, long) for tasklet in pair], countdown.done)
    while not any(len(tasklet.threads) == 2 for tasklet in long):
        assert not gate.is_set()
    gate.set()
    countdown.wait()
    service.close()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.data())
def test_a_worker_robs_the_richest_and_only_with_a_gap_of_two(
    counts: list[int], data: st.DataObject
) -> None:
    thief = data.draw(st.integers(0, len(counts) - 1))
    target = worker_to_rob(counts, thief)
    if max(counts) - counts[thief] >= 2:
        assert target is not None
        assert counts[target] == max(counts)
    else:
        assert target is None


def test_no_tasklet_moves_while_the_gap_is_one() -> None:
    service = ExecutionService(2)
    gate = threading.Event()
    long = [Script(lambda: DONE_NOW if gate.is_set() else PROGRESS) for _ in range(3)]
    short = Script(counting(20))
    countdown = Countdown(4)
    short_done = threading.Event()
    # Worker 0: a long one and the short one; worker 1: two long ones. When the short one ends, the
    # gap is one.
    service.submit([long[0], long[1]], countdown.done)
    service.submit(
        [short, long[2]],
        lambda tasklet: (countdown.done(tasklet), short_done.set() if tasklet is short else None)[
            0
        ],
    )
    assert short_done.wait(10)
    before = [tasklet.calls for tasklet in long]
    while not all(tasklet.calls > 1000 + calls for tasklet, calls in zip(long, before)):
        pass
    assert all(len(tasklet.threads) == 1 for tasklet in long)
    gate.set()
    countdown.wait()
    service.close()


def test_a_tasklet_that_is_marked_already_is_left_alone() -> None:
    service = ExecutionService(2)
    gate = threading.Event()
    tasklets = [Script(lambda: DONE_NOW if gate.is_set() else IDLE) for _ in range(2)]
    countdown = Countdown(2)
    poor, rich = service.workers
    for tasklet in tasklets:
        rich.entries.append((tasklet, countdown.done))
    poor._steal()
    poor._steal()
    poor._steal()  # both are marked: it gives up
    assert [tasklet.taker for tasklet in tasklets] == [poor, poor]
    gate.set()
    rich.give([])
    countdown.wait()
    service.close()


def test_an_idle_instance_uses_no_cpu(pyr: Instance) -> None:
    dag = DAG()
    dag.vertex("source", p.read_items([1]))
    pyr.new_light_job(dag).execute().result(5)
    used = time.process_time()
    threading.Event().wait(0.5)
    assert time.process_time() - used < 0.01


def test_a_waiting_job_parks_its_worker(pyr: Instance) -> None:
    class Wait(AbstractProcessor):
        def complete(self) -> bool:
            return False

    dag = DAG()
    dag.vertex("wait", Wait)
    execution = pyr.new_light_job(dag).execute()
    used = time.process_time()
    threading.Event().wait(0.5)
    assert time.process_time() - used < 0.25
    execution.cancel()
    assert execution.exception(5)


class WaitsForThread(Processor):
    def __init__(self) -> None:
        self.calls = 0
        self.began = threading.Event()
        self.is_over = False

    def init(self, context: ProcessorContext) -> None:
        self.wake = context.wake

    @property
    def is_waiting(self) -> bool:
        return not self.is_over

    def complete(self) -> bool:
        self.calls += 1
        self.began.set()
        return self.is_over


def test_a_processor_that_waits_for_a_thread_is_called_when_that_wakes_it(pyr: Instance) -> None:
    processor = WaitsForThread()
    dag = DAG()
    dag.vertex("waits", lambda: processor)
    execution = pyr.new_light_job(dag).execute()
    assert processor.began.wait(10)
    threading.Event().wait(0.2)
    before = processor.calls
    processor.is_over = True
    processor.wake()
    execution.result(10)
    assert before < 40
    assert processor.calls <= before + 2  # one may have begun before


def test_a_processor_that_is_not_cooperative_has_its_own_thread_and_holds_nobody_up(
    pyr: Instance,
) -> None:
    release = threading.Event()
    names = []

    class Blocking(Processor):
        cooperative = False

        def complete(self) -> bool:
            names.append(threading.current_thread().name)
            return release.wait(10)

    dag = DAG()
    dag.vertex("blocking", Blocking, local_parallelism=3)
    blocked = pyr.new_light_job(dag).execute()
    quick = DAG()
    quick.vertex("source", p.read_items([1]))
    pyr.new_light_job(quick).execute().result(5)
    assert not blocked.done()
    release.set()
    blocked.result(5)
    assert len(names) == 3
    assert all(name.startswith("pyrite-blocking") for name in names)


def test_a_slow_call_is_logged_once_per_vertex(
    pyr: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow(AbstractProcessor):
        def try_process_0(self, item: Any) -> None:
            threading.Event().wait(0.11)

    dag = DAG()
    dag.edge(between(dag.vertex("source", p.read_items([1, 2])), dag.vertex("slow", Slow)))
    with caplog.at_level(logging.WARNING):
        pyr.new_light_job(dag).execute().result(5)
    warnings = [record.message for record in caplog.records if "took" in record.message]
    assert len(warnings) == 1
    assert "'slow'" in warnings[0]


def test_try_process_runs_when_there_is_nothing_to_deliver_and_again_after_false(
    pyr: Instance,
) -> None:
    events: list[str] = []
    gate = threading.Event()

    class Gated(AbstractProcessor):
        cooperative = False

        def complete(self) -> None:
            assert gate.wait(10)
            self.emit("item")

    class Noting(AbstractProcessor):
        answers = iter([False, False, True])

        def try_process(self) -> bool:
            answer = next(self.answers, True)
            events.append(f"try {answer}")
            if answer:
                gate.set()
            return answer

        def try_process_0(self, item: Any) -> None:
            events.append(item)

        def complete(self) -> None:
            events.append("complete")

    dag = DAG()
    dag.edge(between(dag.vertex("gated", Gated), dag.vertex("noting", Noting)))
    pyr.new_light_job(dag).execute().result(10)
    assert events[:3] == ["try False", "try False", "try True"]
    assert events[-1] == "complete"
    assert Counter(events)["item"] == 1


def test_two_jobs_side_by_side_do_not_touch_each_other(pyr_of_any_size: Instance) -> None:
    def job(n: int, *, fails: bool) -> DAG:
        dag = DAG()
        source = dag.vertex("source", p.read_items(range(20_000)))
        work = dag.vertex("work", p.map(lambda i: 1 // (19_000 - i) if fails else i + n))
        sink = dag.vertex("sink", p.write_list(f"out {n}"), local_parallelism=1)
        dag.edge(between(source, work)).edge(between(work, sink))
        return dag

    executions = [
        pyr_of_any_size.new_light_job(job(n, fails=n % 3 == 0)).execute() for n in range(9)
    ]
    for n, execution in enumerate(executions):
        if n % 3 == 0:
            assert isinstance(execution.exception(20), pyrite.JobFailed)
        else:
            execution.result(20)
            assert sorted(pyr_of_any_size.list(f"out {n}")) == [i + n for i in range(20_000)]
