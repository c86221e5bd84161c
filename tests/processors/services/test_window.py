"""The calls of a processor leave in the order of their items, and are limited."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext, SupplierContext
from pyrite.processor import Processor
from pyrite.processors.services.calling import map_async
from pyrite.processors.services.window import Call, Window
from tests.processors.services.test_async_map import member_fields


@given(st.integers(1, 5), st.lists(st.integers(0, 3)))
def test_calls_leave_in_order_when_all_before_them_are_done(limit: int, ends: list[int]) -> None:
    told: list[Call] = []
    window = Window(limit, told.append)
    running: list[Call] = []
    left: list[int] = []
    items = 0
    for end in [*ends, *[0] * 100]:
        if window.room and items < 50:
            running += window.add([items])
            items += 1
        if end < len(running):
            running.pop(end).end()
        while (call := window.take()) is not None:
            assert call.is_done
            left.append(call.item)
        assert len(window) + window.room == limit
        assert window.first is None or not window.first.is_done
    assert left == list(range(items))
    assert len(told) == items


async def jittered(n: int) -> int:
    await asyncio.sleep(random.choice([0, 0, 0.001]))
    return n


def emitted_by_call() -> list[list[Any]]:
    """What a processor of a task that must repeat emits in each of its calls."""
    (supplier,) = map_async(jittered, in_flight=4).get(["here"])
    supplier.init(SupplierContext(**member_fields))
    (processor,) = supplier.get(1)
    outbox = Outbox([5])
    processor.attach(outbox)
    processor.init(ProcessorContext(**member_fields, local_index=0, must_repeat=True))
    emitted = []
    for batch in (range(10), range(10, 12), range(12, 30)):
        inbox = Inbox(batch)
        while inbox:
            processor.try_process()
            processor.process(0, inbox)
            emitted.append(_drained(outbox))
    while not processor.complete():
        emitted.append(_drained(outbox))
    emitted.append(_drained(outbox))
    _close(processor, supplier)
    return emitted


def _drained(outbox: Outbox) -> list[Any]:
    items = list(outbox.buckets[0])
    outbox.buckets[0].clear()
    return items


def _close(processor: Processor, supplier: Any) -> None:
    processor.close(None)
    supplier.close(None)


def test_a_task_that_is_run_again_emits_the_same_in_each_call() -> None:
    first = emitted_by_call()
    assert [item for items in first for item in items] == list(range(30))
    assert all(emitted_by_call() == first for _ in range(5))
