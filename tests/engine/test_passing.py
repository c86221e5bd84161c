"""What other threads see of a loop in the middle of a batch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any

import pytest

from pyrite import processors as p
from pyrite.boxes import Inbox, Outbox
from pyrite.engine.tasklets import ProcessorTasklet
from pyrite.processors.loops.chain import ChainProcessor, chain_of
from pyrite.processors.loops.fused import Link
from tests.engine.test_metrics import Gate

STEPS = [(p.flat_map(lambda n: [n, n]), 2), (p.filter(lambda n: n % 2), 0.5)]


def processor_of(*steps: Any) -> ChainProcessor:
    links = [Link(f"v{number}", supplier.step) for number, supplier in enumerate(steps)]
    processor = chain_of(links, emits=True).processor()
    processor.attach(Outbox([1 << 30]))
    assert isinstance(processor, ChainProcessor)
    return processor


def passes(processor: ChainProcessor, items: range) -> None:
    inbox = Inbox(items)
    with suppress(ValueError):
        while inbox:
            processor.process(0, inbox)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("step", "of_each"), STEPS, ids=["flat_map", "filter"])
def test_what_a_loop_has_counted_is_seen(step: Any, of_each: float, fails: bool) -> None:
    gate = Gate()

    def at_800(n: int) -> int:
        if n == 800 and gate(n) and fails:
            raise ValueError
        return n

    processor = processor_of(p.map(at_800), step)
    thread = threading.Thread(target=passes, args=(processor, range(1024)))
    thread.start()
    assert gate.reached.wait(10)
    in_the_middle = processor.vertex_counts()
    gate.opened.set()
    thread.join()
    assert in_the_middle == [(801, 801), (801, 800 * of_each)]
    assert processor.vertex_counts()[1][1] == (800 if fails else 1024) * of_each


@pytest.fixture
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize(("step", "of_each"), STEPS, ids=["flat_map", "filter"])
def test_no_count_ever_falls_or_is_too_high(step: Any, of_each: float) -> None:
    processor = processor_of(p.map(abs), step)

    def work() -> None:
        for _ in range(300):
            passes(processor, range(64))

    thread = threading.Thread(target=work)
    thread.start()
    shown = [(0, 0), (0, 0)]
    while thread.is_alive():
        now = processor.vertex_counts()
        assert all(after >= before for pair in zip(now, shown) for after, before in zip(*pair))
        assert now[1][1] <= now[1][0] * of_each + of_each
        shown = now
    assert processor.vertex_counts()[1] == (300 * 64, 300 * 64 * of_each)


def test_the_busy_time_does_not_fall_when_a_call_ends() -> None:
    tasklet = ProcessorTasklet.__new__(ProcessorTasklet)
    tasklet.busy, tasklet._busy_said = 5.0, 0.0
    tasklet._began = (5.0, perf_counter() - 1)
    said = tasklet.busy_until_now
    tasklet.busy, tasklet._began = 5.9, None
    assert tasklet.busy_until_now >= said > 5.9
