"""Sentinels: the table of what to do with one, where a sealing part writes them, and the tail of a
queue on several servers while peers come and go."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pyrite.durable.protocol.exactness.sentinels import (
    End,
    Requeue,
    SealTarget,
    Sentinel,
    ends,
    judge,
    seal_targets,
)
from pyrite.durable.protocol.exactness.tails import Count, Leader, TailCheck
from pyrite.durable.protocol.workflow import SPLITS, Part, Upstream
from tests.durable.protocol.shapes import CHAIN, DIAMOND

END = End("in-map", Upstream("in", 0))
OTHER = End("in-map", Upstream("in", 1))


@pytest.mark.parametrize("only_leaders", [False, True])
@pytest.mark.parametrize(
    ("last", "leader", "may_be_tail", "requeue"),
    [
        (None, "a", False, Requeue.NO),
        (Sentinel(END), None, False, Requeue.WITH_NEW_ID),
        (Sentinel(END, "a"), "a", True, Requeue.WITH_BACK_OFF),
        (Sentinel(END, "a"), "b", False, Requeue.NO),
    ],
)
def test_what_the_last_message_of_a_batch_means(
    last: Sentinel | None,
    leader: str | None,
    may_be_tail: bool,
    requeue: Requeue,
    only_leaders: bool,
) -> None:
    verdict = judge(last, leader=leader, only_leaders=only_leaders)
    assert verdict.is_tail == (may_be_tail and only_leaders)
    assert verdict.requeue is requeue


def test_the_ends_of_a_task_are_those_of_all_its_upstream_parts() -> None:
    assert ends(CHAIN, "in") == {End("splits-in", SPLITS)}
    assert ends(CHAIN, "map") == {END, OTHER}
    above = {Upstream("left", 0), Upstream("right", 0), Upstream("right", 1)}
    assert {end.upstream for end in ends(DIAMOND, "merge")} == above


def test_a_concurrent_queue_gets_one_sentinel_in_all() -> None:
    targets = list(seal_targets(CHAIN, Part("j", "in", 1), servers=3, home=2))
    assert targets == [SealTarget(Part("j", "map", 0), "in-map", 2)]


def test_a_sequential_task_gets_a_sentinel_for_each_member_on_every_server() -> None:
    targets = list(seal_targets(DIAMOND, Part("j", "in", 0), servers=2, home=1))
    right = [SealTarget(Part("j", "right", m), "in-right", s) for m in (0, 1) for s in (0, 1)]
    assert targets == [SealTarget(Part("j", "left", 0), "in-left", 1), *right]


def check(leaders: dict[End, Leader], *counts: Count, servers: int = 2) -> bool:
    tail = TailCheck({END, OTHER}, leaders, servers=servers)
    for server, count in enumerate(counts):
        tail.counted(server, count)
    return tail.only_leaders


BOTH = {END: Leader("a", 0, 7), OTHER: Leader("b", 1, 3)}


def test_a_queue_with_all_leaders_and_nothing_else_is_at_its_tail() -> None:
    assert check(BOTH, Count(1, 0, 9), Count(0, 1, 9))


@pytest.mark.parametrize(
    "counts",
    [
        (Count(2, 0, 9), Count(1, 0, 9)),
        (Count(1, 1, 9), Count(1, 0, 9)),
        (Count(2, 0, 9), Count(0, 0, 9)),
        (Count(1, 0, 6), Count(1, 0, 9)),
        (Count(1, 0, 9),),
    ],
    ids=["a segment", "one in flight", "elsewhere", "a server that lags", "a server not counted"],
)
def test_it_is_not_the_tail(counts: tuple[Count, ...]) -> None:
    assert not check(BOTH, *counts)


def test_it_is_not_the_tail_before_all_leaders_are_known() -> None:
    assert not check({END: BOTH[END]}, Count(1, 0, 9), Count(0, 0, 9))


def test_a_leader_that_is_elected_after_the_check_began_does_not_hide_a_segment() -> None:
    leaders = {END: Leader("a", 0, 7)}
    tail = TailCheck({END, OTHER}, leaders, servers=1)
    tail.counted(0, Count(1, 1, 9))  # the leader, and a segment that a peer holds
    leaders[OTHER] = Leader("b", 0, 10)
    assert not tail.only_leaders


@dataclass
class Message:
    sequence: int
    end: End | None = None
    id: str | None = None
    holder: int | None = None


class Consumer:
    """Holds at most one message. `check` is under way while it counts the servers."""

    def __init__(self) -> None:
        self.held: tuple[int, Message] | None = None
        self.check: TailCheck | None = None
        self.counted = 0


class Queue(RuleBasedStateMachine):
    """Two upstream parts fill the queue of one concurrent task on two servers, and seal it, perhaps
    more than once. Three consumers empty it."""

    @initialize(servers=st.integers(1, 2), segments=st.lists(st.integers(0, 3), max_size=6))
    def start(self, servers: int, segments: list[int]) -> None:
        self.servers: list[list[Message]] = [[] for _ in range(servers)]
        self.leaders: dict[End, Leader] = {}
        self.consumers = [Consumer() for _ in range(3)]
        self.sequence = 0
        self.to_write = [(END, OTHER)[number % 2] for number in segments]
        self.sealed: set[End] = set()
        self.is_over = False

    def put(self, server: int, end: End | None, id: str | None) -> None:
        self.sequence += 1
        self.servers[server % len(self.servers)].append(Message(self.sequence, end, id))

    @rule(server=st.integers(0, 1))
    def upstream_writes(self, server: int) -> None:
        if self.to_write:
            self.to_write.pop()
            self.put(server, None, None)

    @rule(end=st.sampled_from([END, OTHER]), with_id=st.booleans())
    def upstream_seals(self, end: End, with_id: bool) -> None:
        if end not in self.to_write and not self.is_over:
            self.sealed.add(end)
            home = int(end == OTHER)
            self.put(home, end, f"s{self.sequence}" if with_id else None)

    @rule(which=st.integers(0, 2), server=st.integers(0, 1))
    def a_consumer_goes_on(self, which: int, server: int) -> None:
        consumer = self.consumers[which]
        if consumer.held is None:
            server %= len(self.servers)
            for message in [m for m in self.servers[server] if m.holder is None][:1]:
                message.holder = which
                consumer.held, consumer.check, consumer.counted = (server, message), None, 0
        elif consumer.held[1].end is None:
            self.take_out(consumer)
        elif consumer.check is None:
            self.vote(consumer, *consumer.held)
        elif consumer.counted < len(self.servers):
            line = self.servers[consumer.counted]
            in_flight = sum(m.holder is not None for m in line)
            count = Count(len(line) - in_flight, in_flight, self.sequence)
            consumer.check.counted(consumer.counted, count)
            consumer.counted += 1
        else:
            self.decide(consumer, *consumer.held)

    def vote(self, consumer: Consumer, server: int, message: Message) -> None:
        assert message.end is not None
        if message.id is not None:
            self.leaders.setdefault(message.end, Leader(message.id, server, message.sequence))
        consumer.check = TailCheck({END, OTHER}, self.leaders, servers=len(self.servers))

    def decide(self, consumer: Consumer, server: int, message: Message) -> None:
        assert message.end is not None
        assert consumer.check is not None
        leader = self.leaders.get(message.end)
        verdict = judge(
            Sentinel(message.end, message.id),
            leader=leader.id if leader else None,
            only_leaders=consumer.check.only_leaders,
        )
        if verdict.is_tail:
            self.is_over = True
            assert self.sealed == {END, OTHER}
            assert not [m for line in self.servers for m in line if m.end is None]
        self.take_out(consumer)
        if verdict.requeue is Requeue.WITH_NEW_ID:
            self.put(server, message.end, f"s{self.sequence}")
        elif verdict.requeue is Requeue.WITH_BACK_OFF:
            self.put(server, message.end, message.id)

    def take_out(self, consumer: Consumer) -> None:
        assert consumer.held is not None
        server, message = consumer.held
        self.servers[server].remove(message)
        consumer.held = None

    @rule(which=st.integers(0, 2))
    def a_consumer_dies(self, which: int) -> None:
        held = self.consumers[which].held
        if held is not None:
            held[1].holder = None
        self.consumers[which] = Consumer()

    def teardown(self) -> None:
        if not hasattr(self, "servers"):
            return
        while self.to_write:
            self.upstream_writes(0)
        self.upstream_seals(END, True)
        self.upstream_seals(OTHER, False)
        for turn in range(3000):
            self.a_consumer_goes_on(turn % 3, turn // 3)
            if self.is_over:
                break
        assert self.is_over
        assert sum(map(len, self.servers)) == 2


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
