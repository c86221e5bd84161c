"""Queues and routes never lose, duplicate or reorder an item, whichever outlet is full when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pyrite.engine.queues import DONE, UNBOUNDED, SpscQueue
from pyrite.engine.routing import Broadcast, Partitioned, Route, RoutingFailed, ToOne, Unicast


class QueueMachine(RuleBasedStateMachine):
    """A queue behaves like a bounded list."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SpscQueue(5)
        self.model: list[int] = []
        self.next = 0

    @rule(count=st.integers(1, 8))
    def offer(self, count: int) -> None:
        items = list(range(self.next, self.next + count))
        taken = self.queue.offer(items)
        assert taken == min(count, 5 - len(self.model))
        self.model += items[:taken]
        self.next += taken

    @rule(limit=st.integers(1, 6))
    def poll(self, limit: int) -> None:
        chunk = self.queue.poll(limit)
        if not self.model:
            assert chunk is None
            return
        assert isinstance(chunk, list)
        assert 1 <= len(chunk) <= limit
        assert chunk == self.model[: len(chunk)]
        del self.model[: len(chunk)]

    @invariant()
    def counts_items(self) -> None:
        assert len(self.queue) == len(self.model)
        assert self.queue.room() == 5 - len(self.model)


TestQueue = QueueMachine.TestCase


def test_the_done_marker_comes_last() -> None:
    queue = SpscQueue(2)
    queue.offer([1, 2])
    queue.finish()
    assert [queue.poll(9), queue.poll(9), queue.poll(9)] == [[1, 2], DONE, None]


def test_an_unbounded_queue_takes_everything() -> None:
    assert SpscQueue(UNBOUNDED).offer([0] * 100_000) == 100_000


def drive(
    route: Route, queues: list[SpscQueue], batches: list[list[Any]], polls: list[tuple[int, int]]
) -> list[list[Any]]:
    """Feeds batches into a route, each when the route has no items left, while consumers take items
    at different times. Returns the items of each consumer."""
    got: list[list[Any]] = [[] for _ in queues]
    bucket: list[Any] = []
    waiting = list(batches)
    turns = iter(polls)
    for _ in range(10_000):
        if not route.pending:
            if not waiting:
                break
            bucket += waiting.pop(0)
        route.drain(bucket)
        who, limit = next(turns, (-1, 1000))
        for i in [who % len(queues)] if who >= 0 else range(len(queues)):
            chunk = queues[i].poll(limit)
            if isinstance(chunk, list):
                got[i] += chunk
    assert not route.pending
    for queue, items in zip(queues, got):
        while isinstance(chunk := queue.poll(1000), list):
            items += chunk
    return got


def numbered(sizes: list[int]) -> list[list[int]]:
    """Batches of these sizes, all items different and ascending."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [list(range(start, start + size)) for start, size in zip(starts, sizes)]


batch_sizes = st.lists(st.integers(1, 12), max_size=10)
queue_counts = st.integers(1, 4)
capacities = st.integers(1, 6)
consumer_turns = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=60)


@given(batch_sizes, queue_counts, capacities, consumer_turns)
def test_unicast_gives_each_item_to_exactly_one(
    sizes: list[int], count: int, capacity: int, polls: list[tuple[int, int]]
) -> None:
    queues = [SpscQueue(capacity) for _ in range(count)]
    got = drive(Unicast(queues), queues, numbered(sizes), polls)
    assert sorted(item for items in got for item in items) == list(range(sum(sizes)))
    assert all(items == sorted(items) for items in got)


def test_unicast_goes_round() -> None:
    queues = [SpscQueue(100) for _ in range(3)]
    got = drive(Unicast(queues), queues, numbered([4, 1, 4]), [])
    assert got == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_unicast_passes_over_a_full_queue_and_makes_no_progress_when_all_are_full() -> None:
    queues = [SpscQueue(1), SpscQueue(3)]
    route, bucket = Unicast(queues), list(range(10))
    assert route.drain(bucket)
    assert not route.drain(bucket)
    assert (queues[0].poll(9), queues[1].poll(9)) == ([0], [1, 2, 3])
    assert route.pending
    assert route.drain(bucket)
    assert (queues[0].poll(9), queues[1].poll(9)) == ([4], [5, 6, 7])


@given(batch_sizes, queue_counts, capacities, consumer_turns)
def test_broadcast_gives_each_item_to_everyone_once_in_order(
    sizes: list[int], count: int, capacity: int, polls: list[tuple[int, int]]
) -> None:
    queues = [SpscQueue(capacity) for _ in range(count)]
    got = drive(Broadcast(queues), queues, numbered(sizes), polls)
    assert got == [list(range(sum(sizes)))] * count


@given(batch_sizes, queue_counts, capacities, consumer_turns)
def test_partitioned_gives_each_item_to_its_owner_in_order(
    sizes: list[int], count: int, capacity: int, polls: list[tuple[int, int]]
) -> None:
    queues = [SpscQueue(capacity) for _ in range(count)]
    asked: list[int] = []

    def partition(key: int) -> int:
        asked.append(key)
        return key % 7

    route = Partitioned(
        queues,
        outlet_of_partition=[p % count for p in range(7)],
        key=None,
        partition=partition,
        edge="'a -> b'",
    )
    got = drive(route, queues, numbered(sizes), polls)
    assert got == [[n for n in range(sum(sizes)) if n % 7 % count == i] for i in range(count)]
    assert asked == list(range(sum(sizes)))  # once per item, over all retries


@given(batch_sizes, capacities, consumer_turns)
def test_a_single_outlet_gets_everything_in_order(
    sizes: list[int], capacity: int, polls: list[tuple[int, int]]
) -> None:
    queues = [SpscQueue(capacity)]
    assert drive(ToOne(queues), queues, numbered(sizes), polls) == [list(range(sum(sizes)))]


def test_a_key_function_that_raises_is_reported_with_edge_and_item() -> None:
    route = Partitioned(
        [SpscQueue(9)],
        outlet_of_partition=[0],
        key=lambda n: 1 // n,
        partition=lambda k: 0,
        edge="'a -> b'",
    )
    with pytest.raises(RoutingFailed) as failed:
        route.drain([2, 0])
    assert (failed.value.edge, failed.value.item, type(failed.value.error)) == (
        "'a -> b'",
        0,
        ZeroDivisionError,
    )
