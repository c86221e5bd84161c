"""A light job on its coordinator: what members answer, and what becomes of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrite import JobCancelled, JobFailed
from pyrite import processors as p
from pyrite.cluster.light.coordination import Coordination, OnTaken
from pyrite.cluster.light.outcomes import Order, Outcome
from pyrite.cluster.light.plans import KeptPlan, PackedDag
from pyrite.collections import MemoryCollections
from pyrite.engine.failure import Failed
from tests.cluster.test_light_jobs import Endless, straight

CANCELLED = Outcome(cancelled=True)
FAILED = Outcome.failed(Failed(ValueError("real")), "b")


class Coordinated:
    """A job on three members, of which the test plays all."""

    def __init__(self, source: Any = None) -> None:
        packed = PackedDag.of(straight(source or p.read_items([1]), p.noop()))
        self.asked: list[Any] = []
        self.taken: list[OnTaken] = []
        self.sent: list[int] = []
        self.cancelled: list[int] = []
        self.outcomes: list[Outcome] = []
        self.job = Coordination(
            b"01234567",
            "job",
            KeptPlan(packed.data),
            packed.hash,
            address="a",
            members=[("a", "1"), ("b", "1"), ("c", "1")],
            parallelism=1,
            collections=MemoryCollections(),
            run=self.run,
            post=lambda call: call(),
            take_snapshots=self._take,
            send=self.send,
            cancel=self.cancelled.append,
            on_end=self.outcomes.append,
        )
        self.job.begin()

    def run(self, call: Callable[[], None]) -> None:
        call()

    def send(self, index: int, order: Order) -> None:
        self.sent.append(index)

    def _take(self, reads: Any, on_taken: OnTaken) -> None:
        self.asked += reads
        self.taken.append(on_taken)

    @property
    def error(self) -> Any:
        (outcome,) = self.outcomes
        return outcome.error("job")


@pytest.fixture
def coordinated() -> Coordinated:
    return Coordinated()


def test_all_members_are_ordered_to_run_the_coordinator_last(coordinated: Coordinated) -> None:
    assert coordinated.sent == [1, 2, 0]


def test_all_members_have_what_they_will_read_before_any_is_ordered_to_run() -> None:
    reading = Coordinated(p.read_map("m"))
    assert (reading.asked, reading.sent) == ([("map", "m")], [])
    reading.taken[0](None)
    assert reading.sent == [1, 2, 0]


@pytest.mark.parametrize("lost", [None, ConnectionError("gone")])
def test_a_job_that_ends_before_it_is_ordered_frees_what_members_have_taken(lost: Any) -> None:
    reading = Coordinated(p.read_list("l"))
    if lost is None:
        reading.job.cancel()
    reading.taken[0](lost)
    assert (reading.sent, reading.cancelled) == ([], [0, 1, 2])
    assert isinstance(reading.error, JobFailed if lost else JobCancelled)


def test_a_job_ends_well_when_every_member_has(coordinated: Coordinated) -> None:
    for index in range(3):
        assert coordinated.outcomes == []
        coordinated.job.answered(index, Outcome())
    assert coordinated.error is None


@pytest.mark.parametrize("failed", [0, 1, 2])
@pytest.mark.parametrize("by_user", [False, True])
def test_a_real_error_wins_over_cancellations_in_any_order(
    coordinated: Coordinated, failed: int, by_user: bool
) -> None:
    if by_user:
        coordinated.job.cancel()
    for index in range(3):
        coordinated.job.answered(index, FAILED if index == failed else CANCELLED)
    assert isinstance(coordinated.error, JobFailed)
    assert isinstance(coordinated.error.__cause__, ValueError)


def test_the_first_failure_stops_the_other_members(coordinated: Coordinated) -> None:
    coordinated.job.answered(1, FAILED)
    assert sorted(coordinated.cancelled) == [0, 2]


def test_a_member_that_is_lost_counts_as_failed_with_its_name(coordinated: Coordinated) -> None:
    coordinated.job.lost("c", "the connection was closed")
    for index in (0, 1):
        coordinated.job.answered(index, CANCELLED)
    assert "member c was lost: the connection was closed" in str(coordinated.error)


def test_a_cancelled_job_ends_when_its_members_have_stopped(coordinated: Coordinated) -> None:
    coordinated.job.cancel()
    assert sorted(coordinated.cancelled) == [0, 1, 2]
    assert coordinated.outcomes == []
    for index in range(3):
        coordinated.job.answered(index, CANCELLED)
    assert isinstance(coordinated.error, JobCancelled)


def test_an_answer_that_comes_twice_counts_once(coordinated: Coordinated) -> None:
    for index in (0, 0, 0, 1):
        coordinated.job.answered(index, Outcome())
    assert coordinated.outcomes == []


def test_a_member_that_cannot_be_ordered_to_run_counts_as_failed() -> None:
    class Unsent(Coordinated):
        def send(self, index: int, order: Order) -> None:
            if index == 1:
                raise ValueError("not sent")
            super().send(index, order)

    coordinated = Unsent()
    assert (coordinated.sent, sorted(coordinated.cancelled)) == ([2, 0], [0, 2])
    for index in (0, 2):
        coordinated.job.answered(index, CANCELLED)
    assert "member b failed" in str(coordinated.error)
    assert "not sent" in str(coordinated.error)


def test_a_job_whose_end_finds_no_thread_to_run_on_fails() -> None:
    coordinated = Coordinated(Endless)

    def no_thread(call: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    coordinated.job._run_somewhere = no_thread
    for index in range(3):
        coordinated.job.answered(index, Outcome())
    assert "can't start new thread" in str(coordinated.error)
