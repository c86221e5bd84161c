"""The scheduler in a simulation: workers finish, fail, crash and die in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.input.schedule import in_order, remaining_paths, upstream_of
from pyrite.workload.scheduling.retry_wait import RetryWait
from pyrite.workload.scheduling.scheduler import (
    DEPTH,
    LONG_SECONDS,
    MOST_SHORT_JOBS,
    Assignment,
    Rules,
    Scheduler,
)
from pyrite.workload.scheduling.states import JobState


def rules(count: int, edges: Sequence[tuple[int, int]] = (), **options: Any) -> Rules:
    upstream, downstream = upstream_of(count, edges)
    lists: dict[str, Any] = {
        "priorities": [0] * count,
        "retries": [0] * count,
        "timeouts": [None] * count,
    }
    return Rules(upstream=upstream, downstream=downstream, **{**lists, **options})


def scheduler(
    count: int,
    edges: Sequence[tuple[int, int]] = (),
    workers: int = 1,
    depth: int = DEPTH,
    **options: Any,
) -> Scheduler:
    made = Scheduler(rules(count, edges, **options), depth=depth)
    for n in range(workers):
        made.joined(f"w{n}")
    return made


def jobs(assignments: list[Assignment]) -> list[tuple[str, int]]:
    return [(a.worker, a.job) for a in assignments]


DB = {"db": 1}
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_a_job_is_assigned_when_its_upstream_jobs_are_done() -> None:
    s = scheduler(4, DIAMOND)
    assert jobs(s.assignments(0)) == [("w0", 0)]
    s.finished(0, 1, succeeded=True, now=1)
    assert jobs(s.assignments(1)) == [("w0", 1), ("w0", 2)]
    s.finished(1, 1, succeeded=True, now=2)
    assert s.assignments(2) == []
    s.finished(2, 1, succeeded=True, now=2)
    assert jobs(s.assignments(2)) == [("w0", 3)]
    s.finished(3, 1, succeeded=True, now=3)
    assert s.has_ended()


def test_the_least_busy_worker_gets_the_next_job_and_none_has_more_than_two() -> None:
    s = scheduler(9, workers=3)
    assert jobs(s.assignments(0)) == [
        ("w0", 0),
        ("w1", 1),
        ("w2", 2),
        ("w0", 3),
        ("w1", 4),
        ("w2", 5),
    ]
    s.finished(1, 1, succeeded=True, now=1)
    assert jobs(s.assignments(1)) == [("w1", 6)]


def test_the_first_job_of_a_worker_is_running_and_the_second_is_assigned() -> None:
    s = scheduler(2)
    s.assignments(0)
    assert s.states == [JobState.RUNNING, JobState.ASSIGNED]
    s.finished(0, 1, succeeded=True, now=1)
    assert s.states == [JobState.DONE, JobState.RUNNING]


def test_a_completion_counts_once() -> None:
    s = scheduler(2, [(0, 1)])
    s.assignments(0)
    assert s.finished(0, 1, succeeded=True, now=1)
    assert not s.finished(0, 1, succeeded=True, now=2)
    assert jobs(s.assignments(2)) == [("w0", 1)]


def test_the_completion_of_an_earlier_attempt_is_ignored() -> None:
    s = scheduler(1, workers=2, retries=[1])
    s.assignments(0)
    s.died("w0", "crash", 1)
    s.assignments(1)
    assert not s.finished(0, 1, succeeded=True, now=2)
    assert s.states == [JobState.RUNNING]


def test_only_the_running_job_is_blamed_for_a_death() -> None:
    s = scheduler(2, crashes_max=0)
    s.assignments(0)
    assert s.died("w0", "crash", 1) == 0
    assert s.states == [JobState.CRASHED, JobState.READY]
    assert s.attempts == [1, 0]


def test_a_job_that_always_kills_its_worker_is_tried_crashes_max_plus_one_times() -> None:
    s = Scheduler(rules(2, [(0, 1)], crashes_max=2))
    for n in range(3):
        s.joined(f"w{n}")
        assert jobs(s.assignments(n)) == [(f"w{n}", 0)]
        s.died(f"w{n}", "crash", n)
    assert s.states == [JobState.CRASHED, JobState.BLOCKED]
    assert s.attempts[0] == 3
    assert s.has_ended()


def test_a_job_that_fails_last_still_finds_a_worker_for_its_retry() -> None:
    s = scheduler(1, retries=[1])
    s.assignments(0)
    s.finished(0, 1, succeeded=False, now=1)
    assert not s.has_ended()
    assert s.assignments(1) == [Assignment("w0", 0, 2)]


def test_a_timeout_uses_up_a_retry() -> None:
    s = Scheduler(rules(1, retries=[1], timeouts=[5.0]))
    s.joined("w0")
    s.assignments(10)
    assert s.overdue(14.9) == []
    assert s.next_moment(14.9) == 15
    assert s.overdue(15) == ["w0"]
    s.died("w0", "timeout", 15)
    assert s.states == [JobState.READY]
    s.joined("w1")
    s.assignments(16)
    s.died("w1", "timeout", 21)
    assert s.states == [JobState.TIMEOUT]


def test_the_time_of_a_queued_job_begins_when_it_runs() -> None:
    s = scheduler(2, timeouts=[None, 5.0])
    s.assignments(0)
    assert s.overdue(100) == []
    s.finished(0, 1, succeeded=True, now=100)
    assert s.next_moment(100) == 105


def test_continue_runs_all_jobs_that_are_not_downstream_of_a_failed_one() -> None:
    s = scheduler(4, [(0, 1), (1, 2)])
    s.assignments(0)
    s.finished(0, 1, succeeded=False, now=1)
    assert s.states == [JobState.FAILED, JobState.BLOCKED, JobState.BLOCKED, JobState.RUNNING]
    s.finished(3, 1, succeeded=True, now=2)
    assert s.has_ended()


def test_a_job_waits_before_its_retry_and_the_others_run_meanwhile() -> None:
    s = Scheduler(rules(2, retries=[2, 0], retry_waits={0: RetryWait(3)}), draw=lambda: 0.5)
    s.joined("w0")
    assert jobs(s.assignments(0)) == [("w0", 0), ("w0", 1)]
    s.finished(0, 1, succeeded=False, now=1)
    assert s.states == [JobState.WAITING, JobState.RUNNING]
    assert s.next_moment(1) == 4
    assert s.assignments(3.9) == []
    assert jobs(s.assignments(4)) == [("w0", 0)]
    s.finished(1, 1, succeeded=True, now=4)
    s.died("w0", "crash", 5)
    assert s.next_moment(5) == 11  # the second wait is twice as long, whatever the causes
    s.cancel()
    assert s.states == [JobState.CANCELLED, JobState.DONE]
    assert s.has_ended()


@pytest.mark.parametrize("mode", ["abridge", "stop"])
def test_abridge_and_stop_start_no_job_after_a_failure(mode: str) -> None:
    s = scheduler(7, [(0, 6)], workers=2, on_error=mode)
    assert len(s.assignments(0)) == 4
    s.finished(0, 1, succeeded=False, now=1)
    assert s.assignments(1) == []
    assert s.states[6] is JobState.BLOCKED
    assert s.states[4] is JobState.CANCELLED
    assert s.stops_running_jobs == (mode == "stop")


def test_abridge_takes_back_jobs_that_have_not_started_and_lets_running_jobs_finish() -> None:
    s = scheduler(4, workers=2, on_error="abridge")
    s.assignments(0)
    s.finished(0, 1, succeeded=False, now=1)  # now 2 runs on w0, and 3 waits behind 1
    assert s.recalls(1) == ["w1"]
    s.returned(3, 1)
    s.finished(2, 1, succeeded=True, now=2)
    s.finished(1, 1, succeeded=True, now=2)
    assert s.states == [JobState.FAILED, JobState.DONE, JobState.DONE, JobState.CANCELLED]
    assert s.has_ended()


def test_an_idle_worker_gets_a_job_that_waits_behind_a_long_one() -> None:
    s = scheduler(3, workers=2)
    assert jobs(s.assignments(0)) == [("w0", 0), ("w1", 1), ("w0", 2)]
    assert s.recalls(0) == []
    s.finished(1, 1, succeeded=True, now=1)
    assert s.recalls(1) == ["w0"]
    s.returned(2, 1)
    assert s.assignments(1) == [Assignment("w1", 2, 1)]


def with_short_jobs(count: int) -> Scheduler:
    """One that has seen a hundred short jobs end."""
    s = scheduler(100 + count)
    for n in range(100):
        s.assignments(n * 1e-4)
        s.finished(n, 1, succeeded=True, now=(n + 1) * 1e-4)
    s.assignments(0.01)
    return s


def test_a_worker_gets_more_jobs_while_they_are_short() -> None:
    s = with_short_jobs(50)
    assert len(s.jobs_of("w0")) == MOST_SHORT_JOBS


def test_a_worker_gets_two_jobs_if_they_are_not_short() -> None:
    for seconds in (0.01, 0.1):
        s = scheduler(100)
        for n in range(90):
            s.assignments(n * seconds)
            assert len(s.jobs_of("w0")) == 2
            s.finished(n, 1, succeeded=True, now=(n + 1) * seconds)


def test_no_more_than_one_job_waits_behind_one_that_turns_out_to_be_long() -> None:
    s = with_short_jobs(50)
    assert s.recalls(0.01) == []
    assert s.next_moment(0.01) == pytest.approx(0.01 + LONG_SECONDS)
    late = 0.011 + LONG_SECONDS
    assert s.recalls(late) == ["w0"]
    assert s.next_moment(late) is None
    for job in s.jobs_of("w0")[1:]:
        s.returned(job, late)
    s.assignments(late)
    assert len(s.jobs_of("w0")) == 2
    assert s.recalls(late) == []


def test_priority_comes_before_the_order_of_arrival() -> None:
    s = scheduler(3, priorities=[5, 0, -1])
    assert [a.job for a in s.assignments(0)] == [2, 1]


def test_the_job_with_the_longest_remaining_path_starts_first_if_durations_are_known() -> None:
    edges = [(0, 1), (2, 3)]
    upstream, downstream = upstream_of(4, edges)
    remaining = remaining_paths(
        in_order(upstream, downstream), downstream, {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}
    )
    s = scheduler(4, edges, remaining=remaining)
    assert [a.job for a in s.assignments(0)] == [2, 0]


def test_no_more_jobs_of_a_pool_run_at_the_same_time_than_its_size() -> None:
    s = scheduler(4, workers=4, needs={0: DB, 1: DB, 3: DB}, capacities={"db": 1})
    assert [a.job for a in s.assignments(0)] == [0, 2]
    assert s.assignments(0) == []
    s.finished(0, 1, succeeded=True, now=1)
    assert [a.job for a in s.assignments(1)] == [1]
    s.died(s._holder[1], "crash", 2)
    assert [a.job for a in s.assignments(2)] == [3]


def test_a_job_that_waits_for_a_pool_is_work_for_a_worker_when_the_only_one_died() -> None:
    s = scheduler(2, needs={0: DB, 1: DB}, capacities={"db": 1})
    assert jobs(s.assignments(0)) == [("w0", 0)]
    before = s.has_work_for_a_worker
    s.died("w0", "timeout", 1)
    assert (before, s.has_work_for_a_worker) == (False, True)
    s.joined("w1")
    assert jobs(s.assignments(2)) == [("w1", 1)]


def test_a_job_that_was_taken_back_keeps_its_place_before_one_that_waits() -> None:
    s = scheduler(2, needs={0: {"cores": 2}, 1: {"cores": 3}}, capacities={"cores": 4})
    assert jobs(s.assignments(0)) == [("w0", 0)]
    s.returned(0, 1)
    assert jobs(s.assignments(1)) == [("w0", 0)]


def test_a_job_that_is_up_to_date_is_skipped_and_releases_its_downstream_jobs() -> None:
    s = Scheduler(rules(4, DIAMOND), is_current=lambda job: job in (0, 1))
    s.joined("w0")
    assert [a.job for a in s.assignments(0)] == [2]
    assert s.states[:2] == [JobState.SKIPPED, JobState.SKIPPED]


def test_cancel_ends_every_job_that_has_not_ended() -> None:
    s = scheduler(5, [(0, 4)], workers=1)
    s.assignments(0)
    s.finished(0, 1, succeeded=True, now=1)
    s.cancel()
    assert s.stops_running_jobs
    s.died("w0", "cancel", 2)
    assert s.states == [JobState.DONE, *[JobState.CANCELLED] * 4]
    assert s.has_ended()


CAPACITIES = {"p": 1, "memory": 5}
NEEDS = st.fixed_dictionaries(
    {}, optional={name: st.integers(1, most) for name, most in CAPACITIES.items()}
)
WAITS = st.builds(RetryWait, st.sampled_from([0.5, 3.0]), most=st.just(10.0))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], dict[str, Any]]:
    count = draw(st.integers(1, 12))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    options = {
        "retries": draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        "priorities": draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        "needs": draw(st.dictionaries(st.integers(0, count - 1), NEEDS)),
        "capacities": CAPACITIES,
        "retry_waits": draw(st.dictionaries(st.integers(0, count - 1), WAITS)),
        "on_error": draw(st.sampled_from(["continue", "abridge", "stop"])),
        "crashes_max": draw(st.integers(0, 2)),
    }
    return count, edges, options


@given(worlds(), st.data())
def test_whatever_happens_every_job_ends_and_none_starts_too_early(
    world: tuple[int, list[tuple[int, int]], dict[str, Any]], data: st.DataObject
) -> None:
    count, edges, options = world
    depth, step = data.draw(st.sampled_from([(1, 1.0), (2, 1.0), (2, 1e-6), (5, 1.0)]))
    s = Scheduler(rules(count, edges, **options), depth=depth)
    upstream, _ = upstream_of(count, edges)
    hands: dict[str, list[Assignment]] = {}
    done: set[int] = set()
    tried: set[tuple[int, int]] = set()
    not_before: dict[int, float] = {}
    born = 0
    now = 0.0
    for _ in range(400):
        if s.has_ended():
            break
        while len(hands) < 2:
            hands[f"w{born}"] = []
            s.joined(f"w{born}")
            s._hands[f"w{born}"].pace = 0.0
            born += 1
        for assignment in s.assignments(now):
            assert all(above in done for above in upstream[assignment.job])
            assert assignment.job not in done
            assert (assignment.job, assignment.attempt) not in tried
            assert now >= not_before.get(assignment.job, 0.0)
            tried.add((assignment.job, assignment.attempt))
            hands[assignment.worker].append(assignment)
            assert len(hands[assignment.worker]) <= (MOST_SHORT_JOBS if depth == DEPTH else depth)
        taken_by = [options["needs"].get(a.job, {}) for hand in hands.values() for a in hand]
        for name, capacity in CAPACITIES.items():
            assert sum(needs.get(name, 0) for needs in taken_by) <= capacity
        for worker in s.recalls(now):
            if data.draw(st.booleans()):
                for taken in hands[worker][1:]:
                    tried.discard((taken.job, taken.attempt))
                    s.returned(taken.job, now)
                del hands[worker][1:]
        busy = [worker for worker, hand in hands.items() if hand]
        if not busy:
            retry = s.next_moment(now)  # nothing else could start: no job waits for ever
            assert retry is None or retry > now
            assert retry is not None or s.has_ended()
            now = max(now, retry or now)
            continue
        worker = data.draw(st.sampled_from(busy))
        now += step
        event = data.draw(
            st.sampled_from(["done", "done", "done", "fails", "dies", "stopped", "again"])
        )
        if event in ("done", "fails"):
            ended = hands[worker].pop(0)
            assert s.finished(ended.job, ended.attempt, succeeded=event == "done", now=now)
            if event == "done":
                done.add(ended.job)
            elif ended.job in options["retry_waits"]:
                not_before[ended.job] = now + 0.9 * options["retry_waits"][ended.job].first
        elif event == "again" and done:
            assert not s.finished(min(done), 1, succeeded=True, now=now)
        else:
            waiting = hands.pop(worker)[1:]
            tried -= {(a.job, a.attempt) for a in waiting}
            s.died(worker, "cancel" if s.stops_running_jobs else "crash", now)
    else:
        raise AssertionError("the run does not end")
    assert {job for job, state in enumerate(s.states) if state is JobState.DONE} == done
    for job, state in enumerate(s.states):
        assert state.has_ended
        if state is JobState.BLOCKED:
            assert any(
                s.states[above].is_failure or s.states[above] is JobState.BLOCKED
                for above in upstream[job]
            )
        if state is JobState.CANCELLED:
            assert options["on_error"] != "continue"
