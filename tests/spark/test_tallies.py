"""What a driver has been told by the tasks of a run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrite.engine.metrics import highest
from pyrite.spark.live.tallies import LOST_SECONDS, Tallies, Told
from tests.engine.test_metrics import metrics_of


def told(
    received: int, *, member: int = 0, attempt: str = "0", is_over: bool = False, pid: int = 1
) -> Told:
    process = {"member": str(member), "host": "h", "pid": pid, "memory_bytes": 1000}
    metrics: Any = {"v": metrics_of({"k": received}, float(received))}
    return Told(0, member, attempt, is_over, process, metrics)


def received(tallies: Tallies, now: float = 0.0) -> int:
    count: int = tallies.metrics(["v"], now)["v"]["received"]
    return count


ATTEMPTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(1, 50), st.booleans()),
    max_size=30,
)


@given(ATTEMPTS)
def test_counters_never_fall_and_attempts_are_not_added_up(
    messages: list[tuple[int, str, int, bool]],
) -> None:
    tallies, before = Tallies(1.0), 0
    furthest: dict[int, int] = {}
    for member, attempt, count, is_over in messages:
        tallies.take(told(count, member=member, attempt=attempt, is_over=is_over), 0.0)
        furthest[member] = max(furthest.get(member, 0), count)
        now = received(tallies)
        assert now >= before
        assert now == sum(furthest.values())
        before = now


@given(st.integers(1, 99), st.integers(1, 99))
def test_the_highest_of_two_does_not_depend_on_their_order(one: int, two: int) -> None:
    a: Any = {"v": metrics_of({"k": one}, float(one))}
    b: Any = {"v": metrics_of({"k": two}, float(two))}
    assert highest(a, b) == highest(b, a) == (a if one >= two else b)
    assert highest(a, {}) == highest({}, a) == a


def test_a_task_that_is_over_holds_nothing_and_has_no_process() -> None:
    tallies = Tallies(1.0)
    tallies.take(told(5), 0.0)
    assert tallies.metrics(["v"], 0.0)["v"]["held_bytes"] == 5
    assert [each["pid"] for each in tallies.members(0.0)] == [1]
    tallies.take(told(9, is_over=True), 1.0)
    assert tallies.metrics(["v"], 1.0)["v"]["held_bytes"] == 0
    assert tallies.metrics(["v"], 1.0)["v"]["inbound"]["source"]["fill"] == 0
    assert tallies.members(1.0) == []
    assert received(tallies, 1.0) == 9


def test_an_attempt_that_was_killed_is_forgotten_after_some_seconds() -> None:
    tallies = Tallies(1.0)
    tallies.take(told(5), 0.0)
    assert tallies.members(LOST_SECONDS + 2)
    assert not tallies.members(LOST_SECONDS + 2.1)
    assert received(tallies, LOST_SECONDS + 2.1) == 5


def test_two_attempts_at_a_time_are_two_processes() -> None:
    tallies = Tallies(1.0)
    tallies.take(told(5, attempt="0", pid=1), 0.0)
    tallies.take(told(3, attempt="1", pid=2), 0.0)
    assert [each["pid"] for each in tallies.members(0.0)] == [1, 2]
    tallies.take(told(6, attempt="1", pid=2, is_over=True), 0.0)
    assert [each["pid"] for each in tallies.members(0.0)] == [1]


def test_tasks_that_wait_for_a_free_core_are_processors_that_are_not_done() -> None:
    tallies = Tallies(1.0, members=5)
    tallies.take(told(3, member=0, is_over=True), 0.0)
    tallies.take(told(4, member=1), 0.0)
    metrics = tallies.metrics(["v"], 0.0)["v"]
    assert [processor["received"] for processor in metrics["processors"]] == [3, 4, 0, 0, 0]
    assert metrics["received"] == 7
