"""Totals of all runs of a job: counters never fall, and nothing is counted twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrite.telemetry.metrics.totals import OTHERS, Totals

_RUNS = ("a", "b")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("began"), st.sampled_from(_RUNS), st.just(0)),
        st.tuples(st.just("saw"), st.sampled_from(_RUNS), st.integers(0, 100)),
        st.tuples(st.just("ended"), st.sampled_from(_RUNS), st.just(0)),
    )
)


@given(_STEPS)
def test_a_counter_never_falls_and_has_the_most_of_each_run(
    steps: list[tuple[str, str, int]],
) -> None:
    totals, most, expected, last = Totals(), {}, 0, 0.0
    for what, run, count in steps:
        if what == "began" and run not in most:
            totals.began(run, "job")
            most[run] = 0
        elif what == "saw" and run in most:
            totals.saw(run, {"v": {"received": count, "queue_fill": count}})
            expected += max(0, count - most[run])
            most[run] = max(most[run], count)
        elif what == "ended" and run in most:
            totals.ended(run, state="completed", at=1.0, seconds=1.0)
            del most[run]
        if any("v" in job.vertices for job in totals):
            received = totals["job"].vertices["v"].counters["received"]
            assert received == expected >= last
            last = received
            assert totals["job"].vertices["v"].gauges["queue_items"] == 0 or most


def test_a_run_that_is_seen_after_its_end_is_not_counted_again() -> None:
    totals = Totals()
    totals.began("r", "job")
    totals.saw("r", {"v": {"received": 5, "skipped": 1}})
    totals.ended("r", state="failed", at=1.0, seconds=2.0, failed_at="v")
    totals.saw("r", {"v": {"received": 7}})
    totals.ended("r", state="failed", at=1.0, seconds=2.0)
    job = totals["job"]
    assert (job.vertices["v"].counters["received"], job.vertices["v"].counters["errors"]) == (5, 2)
    assert (job.running, job.ended["failed"], job.last_success) == (0, 1, None)


def test_too_many_jobs_are_counted_together() -> None:
    totals = Totals(most_jobs=2)
    for number in range(5):
        totals.began(str(number), f"job {number}")
        totals.saw(str(number), {f"v{number}": {"received": 1}})
    assert [job.job for job in totals] == ["job 0", "job 1", OTHERS]
    assert totals[OTHERS].vertices["(all)"].counters["received"] == 3
