"""The fence of a sequential part: which commit may follow which record. Peers that have lost the
part, answers that are lost and commits that arrive late must not double or lose anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pyrite.durable.protocol.exactness.commits import (
    Answer,
    Commit,
    Next,
    Record,
    Stored,
    after_no_answer,
    is_done,
    may_follow,
    taken_over,
)
from pyrite.durable.protocol.exactness.reading import Came
from pyrite.durable.protocol.states import ProtocolError
from pyrite.durable.protocol.workflow import SPLITS

PLACE = ("edge", 0)
LAST = Stored(
    7,
    Record(
        epoch=3,
        attempt="a",
        positions={PLACE: 5},
        ended=frozenset({Came("edge", SPLITS, 0)}),
        finished=frozenset({1}),
        is_over=True,
    ),
)


def test_the_next_commit_of_the_same_peer_is_accepted() -> None:
    assert may_follow(LAST, Commit(7, replace(LAST.record, attempt="b"))) is Answer.ACCEPTED


def test_a_commit_with_an_earlier_epoch_is_refused() -> None:
    late = Commit(7, replace(LAST.record, epoch=2, attempt="b"))
    assert may_follow(LAST, late) is Answer.EPOCH_IS_OVER


@pytest.mark.parametrize("follows", [6, 8])
def test_a_commit_that_does_not_follow_the_last_record_is_refused(follows: int) -> None:
    assert may_follow(LAST, Commit(follows, LAST.record)) is Answer.NOT_THE_LAST


def test_after_a_take_over_the_earlier_peer_is_refused_even_if_it_has_read_the_record() -> None:
    taken = Stored(8, taken_over(LAST, epoch=9, attempt="b").record)
    late = Commit(8, replace(LAST.record, attempt="c"))
    assert may_follow(taken, late) is Answer.EPOCH_IS_OVER


def test_a_peer_that_takes_over_keeps_all_but_epoch_and_attempt() -> None:
    commit = taken_over(LAST, epoch=9, attempt="b")
    assert may_follow(LAST, commit) is Answer.ACCEPTED
    assert commit.record == replace(LAST.record, epoch=9, attempt="b")


@pytest.mark.parametrize(
    "contradiction",
    [
        {"positions": {PLACE: 4}},
        {"ended": frozenset()},
        {"finished": frozenset()},
        {"is_over": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_commit_that_takes_something_back_is_a_bug(contradiction: dict[str, object]) -> None:
    record = replace(LAST.record, attempt="b", **contradiction)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="commit 'b' contradicts record 7"):
        may_follow(LAST, Commit(7, record))


def test_a_peer_without_an_answer_finds_its_own_attempt_in_the_record() -> None:
    assert after_no_answer(LAST, Commit(6, LAST.record)) is Next.DONE


def test_a_peer_without_an_answer_tries_again_if_nothing_has_happened() -> None:
    assert after_no_answer(LAST, Commit(7, replace(LAST.record, attempt="b"))) is Next.RETRY


def test_a_peer_without_an_answer_stops_if_another_has_the_part() -> None:
    assert after_no_answer(LAST, Commit(6, replace(LAST.record, attempt="b"))) is Next.STOP


def test_a_marked_message_is_only_acked() -> None:
    assert is_done("anybody's attempt")
    assert not is_done(None)


INPUT = 8


class Worker:
    """A peer with an offer for the part. It reads messages, and emits each as output."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.base: Stored | None = None
        self.read = 0
        self.unsure: Commit | None = None
        self.has_stopped = False


class Fence(RuleBasedStateMachine):
    """One part, whose input is the numbers 0, 1, 2, ...; all peers that ever had it go on."""

    @initialize()
    def start(self) -> None:
        self.stored = Stored(0, Record())
        self.output: list[int] = []
        self.workers = [Worker(1)]
        self.network: list[Commit] = []
        self.emitted: dict[str, range] = {}
        self.attempts = 0

    def land(self, commit: Commit) -> bool:
        """What a store does, in one step."""
        if may_follow(self.stored, commit) is not Answer.ACCEPTED:
            return False
        self.output += self.emitted.get(commit.record.attempt, ())
        self.stored = Stored(self.stored.sequence + 3, commit.record)
        return True

    def worker(self, which: int) -> Worker:
        return self.workers[which % len(self.workers)]

    def attempt(self) -> str:
        self.attempts += 1
        return f"attempt{self.attempts}"

    @rule()
    def the_part_is_offered_again(self) -> None:
        if len(self.workers) < 5:
            self.workers.append(Worker(len(self.workers) + 1))

    @rule(which=st.integers(0, 4), fate=st.sampled_from(["told", "unheard", "slow"]))
    def a_peer_commits(self, which: int, fate: str) -> None:
        worker = self.worker(which)
        if worker.has_stopped or worker.unsure:
            return
        if worker.base is None:
            commit = taken_over(self.stored, epoch=worker.epoch, attempt=self.attempt())
        else:
            read, attempt = worker.read, self.attempt()
            worker.read = min(read + 1, INPUT)
            self.emitted[attempt] = range(read, worker.read)
            record = replace(worker.base.record, attempt=attempt, positions={PLACE: worker.read})
            commit = Commit(worker.base.sequence, record)
        if fate == "slow":
            self.network.append(commit)
        elif self.land(commit) and fate == "told":
            self.goes_on(worker)
            return
        worker.unsure = commit

    def goes_on(self, worker: Worker) -> None:
        worker.base, worker.unsure = self.stored, None
        worker.read = self.stored.record.positions.get(PLACE, 0)

    @rule(which=st.integers(0, 4), fate=st.sampled_from(["told", "unheard", "slow"]))
    def a_peer_reads_the_record(self, which: int, fate: str) -> None:
        worker = self.worker(which)
        if worker.unsure is None:
            return
        answer = after_no_answer(self.stored, worker.unsure)
        if answer is Next.DONE:
            self.goes_on(worker)
        elif answer is Next.STOP:
            worker.has_stopped, worker.unsure = True, None
        elif fate == "slow":
            self.network.append(worker.unsure)
        elif self.land(worker.unsure) and fate == "told":
            self.goes_on(worker)

    @rule(which=st.integers(0, 9), is_lost=st.booleans())
    def a_slow_commit_arrives(self, which: int, is_lost: bool) -> None:
        if self.network:
            commit = self.network.pop(which % len(self.network))
            if not is_lost:
                self.land(commit)

    def teardown(self) -> None:
        if not hasattr(self, "stored"):
            return
        self.workers.append(Worker(99))
        for _ in range(INPUT + 1):
            self.a_peer_commits(len(self.workers) - 1, "told")
        for commit in self.network:
            self.land(commit)
        assert self.output == list(range(INPUT))


TestFence = Fence.TestCase
TestFence.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
