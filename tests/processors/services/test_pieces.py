"""flat_map_with takes what is made of an item in pieces, as the steps that follow take it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pyrite import DAG, Instance, JobCancelled, JobFailed, Pipeline, Retry, between, skip
from pyrite import processors as p
from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext, SupplierContext
from pyrite.processors.services import pieces
from pyrite.testing import verify_processor
from tests.processors.services.test_async_map import Held, member_fields


def endless(client: Any, n: int) -> Iterator[int]:
    yield from itertools.count(n)


async def endless_later(client: Any, n: int) -> AsyncIterator[int]:
    for each in itertools.count(n):
        await asyncio.sleep(0)
        yield each


async def endless_at_once(client: Any, n: int) -> AsyncIterator[int]:
    for each in itertools.count(n):
        yield each


async def an_endless_one(client: Any, n: int) -> Iterator[int]:
    return endless(client, n)


async def an_async_one(client: Any, n: int) -> AsyncIterator[int]:
    return endless_later(client, n)


ENDLESS = [endless, endless_later, endless_at_once, an_endless_one, an_async_one]


@pytest.mark.parametrize("function", ENDLESS)
def test_an_endless_generator_ends_at_a_limit(function: Any) -> None:
    stage = Pipeline().read_from([0] * 3, parallelism=1).flat_map_with(dict, function)
    assert stage.limit(5).collect() == [0, 1, 2, 3, 4]
    assert len(stage.rebalance().map(abs).limit(5000).collect()) == 5000


def test_generators_and_then_the_client_are_closed_at_a_limit() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def client() -> Iterator[None]:
        yield
        log.append("client")

    def noted(client: None, n: int) -> Iterator[int]:
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "generator")
            yield from itertools.count(n)

    async def noted_later(client: None, n: int) -> AsyncIterator[int]:
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "generator")
            async for each in endless_later(client, n):
                yield each

    for function in (noted, noted_later):
        Pipeline().read_from([0]).flat_map_with(client, function).limit(5).collect()
    assert log == ["generator", "client"] * 2


class Pages:
    """A client that is its own iterator, for one item after another."""

    def __aiter__(self) -> Pages:
        self.left = 3
        return self

    async def __anext__(self) -> int:
        self.left -= 1
        if self.left < 0:
            raise StopAsyncIteration
        return self.left

    async def aclose(self) -> None:
        self.left = -1
        closed.append(self)


closed: list[Pages] = []


def test_an_iterator_that_is_no_generator_is_not_closed_with_its_item() -> None:
    closed.clear()
    stage = Pipeline().read_from([0, 1], parallelism=1)
    made = stage.flat_map_with(Pages, lambda client, n: client, in_flight=1)
    assert made.collect() == [2, 1, 0, 2, 1, 0]
    assert len(closed) == 1


def test_a_cancel_ends_generators_that_wait_for_room(pyr: Instance) -> None:
    ended, held = threading.Event(), threading.Event()

    async def noted(client: Any, n: int) -> AsyncIterator[int]:
        try:
            async for each in endless_at_once(client, n):
                yield each
        finally:
            ended.set()

    pipe = Pipeline()
    made = pipe.read_from([0]).flat_map_with(dict, noted)
    made.process(lambda: Held(held.set)).write_to(p.noop())
    execution = pyr.new_light_job(pipe).execute()
    assert held.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert ended.is_set()


class Taken:
    """Counts what is taken from its generators."""

    def __init__(self) -> None:
        self.count = 0

    def some(self, client: Any, n: int) -> Iterator[int]:
        for each in range(10_000):
            self.count += 1
            yield each

    async def some_later(self, client: Any, n: int) -> AsyncIterator[int]:
        for each in self.some(client, n):
            yield each


@pytest.mark.parametrize("method", [Taken.some, Taken.some_later])
def test_a_slow_receiver_holds_up_the_generators(pyr: Instance, method: Any) -> None:
    taken = Taken()
    taken_while_held: list[int] = []
    dag = DAG()
    step = p.flat_map_with(dict, method.__get__(taken), in_flight=2)
    held = dag.vertex("held", lambda: Held(lambda: taken_while_held.append(taken.count)))
    made = dag.vertex("made", step)
    dag.edge(between(dag.vertex("source", p.read_items(range(3)), local_parallelism=1), made))
    dag.edge(between(made, held).config(queue_size=2, high_water_mark=8))
    pyr.new_light_job(dag).execute().result(20)
    assert taken.count == 30_000
    in_inbox_queue_and_outbox = 2 + 2 + 8
    assert taken_while_held[0] <= in_inbox_queue_and_outbox + 3 * pieces.PIECE


@pytest.mark.parametrize("function", [Taken().some, Taken().some_later])
def test_the_order_of_all_pieces_is_kept(function: Any) -> None:
    stage = Pipeline().read_from(range(5), parallelism=1).flat_map_with(dict, function, in_flight=3)
    assert stage.collect() == [*range(10_000)] * 5


def test_what_is_made_slowly_is_emitted_before_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_SECONDS", -1.0)
    came = threading.Event()

    def slowly(client: Any, n: int) -> Iterator[int]:
        yield 1
        assert came.wait(20)
        yield 2

    stage = Pipeline().read_from([0]).flat_map_with(dict, slowly)
    assert stage.inspect(lambda n: came.set()).collect() == [1, 2]


def fails_late(client: Any, n: int) -> Iterator[int]:
    yield from range(1000)
    if n == 1:
        raise ValueError(n)


async def fails_later(client: Any, n: int) -> AsyncIterator[int]:
    for each in fails_late(client, n):
        yield each


@pytest.mark.parametrize("function", [fails_late, fails_later])
def test_with_on_error_an_item_counts_whole_or_not_at_all(function: Any) -> None:
    stage = Pipeline().read_from(range(3), parallelism=1)
    good = stage.flat_map_with(dict, function, on_error=skip(at_most=1))
    assert good.collect() == [*range(1000)] * 2


def test_with_retry_nothing_is_emitted_twice() -> None:
    tries: list[int] = []

    def fails_once(client: Any, n: int) -> Iterator[int]:
        yield from range(1000)
        tries.append(n)
        if len(tries) == 1:
            raise ValueError(n)

    stage = Pipeline().read_from([7]).flat_map_with(dict, fails_once, retry=Retry(1, wait=0))
    assert stage.collect() == [*range(1000)]
    assert tries == [7, 7]


@pytest.mark.parametrize("function", [fails_late, fails_later])
def test_an_error_in_a_later_piece_names_the_item(function: Any) -> None:
    with pytest.raises(JobFailed) as raised:
        Pipeline().read_from([0, 1, 2], parallelism=1).flat_map_with(dict, function).collect()
    assert (raised.value.vertex, raised.value.item) == ("flat_map_with", 1)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 3)


def up_to(many: int, n: int) -> Iterator[int]:
    yield from range(many)


async def up_to_later(many: int, n: int) -> AsyncIterator[int]:
    for each in range(many):
        yield each


@pytest.mark.parametrize("function", [up_to, up_to_later])
def test_the_processor_can_be_called_in_all_ways(small_pieces: None, function: Any) -> None:
    verify_processor(p.flat_map_with(lambda: 7, function), [1, 2], [*range(7), *range(7)])


def emitted_by_call(function: Any) -> list[list[Any]]:
    """What a processor of a task that must repeat emits in each of its calls."""
    (supplier,) = p.flat_map_with(lambda: 7, function, in_flight=2).get(["here"])
    supplier.init(SupplierContext(**member_fields))
    (processor,) = supplier.get(1)
    processor.attach(outbox := Outbox([5]))
    processor.init(ProcessorContext(**member_fields, local_index=0, must_repeat=True))
    emitted = []
    inbox = Inbox(range(10))
    while inbox:
        processor.process(0, inbox)
        emitted.append(outbox.buckets[0].copy())
        outbox.buckets[0].clear()
    while not processor.complete():
        emitted.append(outbox.buckets[0].copy())
        outbox.buckets[0].clear()
    emitted.append(outbox.buckets[0].copy())
    processor.close(None)
    supplier.close(None)
    return emitted


@pytest.mark.parametrize("function", [up_to, up_to_later])
def test_a_task_that_is_run_again_emits_the_same_in_each_call(
    small_pieces: None, function: Any
) -> None:
    first = emitted_by_call(function)
    assert [item for items in first for item in items] == [*range(7)] * 10
    assert max(map(len, first)) == 5
    assert all(emitted_by_call(function) == first for _ in range(3))
