"""Resources that jobs share: never more than there is, and no job waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.scheduling.resources import Resources

CAPACITIES = {"cpus": 4, "memory": 8}
NEEDS = st.dictionaries(
    st.sampled_from(sorted(CAPACITIES)), st.integers(1, 4), min_size=1
) | st.just({"cpus": 4, "memory": 8})


@given(st.lists(st.tuples(NEEDS, st.integers(0, 2)), min_size=1, max_size=12), st.data())
def test_the_first_waiting_job_is_never_overtaken_by_what_it_needs(
    jobs: list[tuple[dict[str, int], int]], data: st.DataObject
) -> None:
    resources = Resources(CAPACITIES)
    running: list[int] = []
    arrived: list[int] = []
    waiting: list[tuple[int, int, int]] = []

    def lacks(job: int) -> dict[str, int]:
        needs = jobs[job][0]
        return {name: max(0, n - resources.free[name]) for name, n in needs.items()}

    while len(arrived) < len(jobs) or running:
        first = min(waiting, default=None)
        before = lacks(first[2]) if first else {}
        new = len(arrived)
        gives = running and (new == len(jobs) or data.draw(st.booleans()))
        if gives:
            resources.give_back(jobs[running.pop(data.draw(st.integers(0, len(running) - 1)))][0])
            while (job := resources.next()) is not None:
                running.append(job)
                waiting = [entry for entry in waiting if entry[2] != job]
        else:
            arrived.append(new)
            if resources.take_or_wait(new, jobs[new][0], rank=jobs[new][1]):
                running.append(new)
            else:
                waiting.append((jobs[new][1], new, new))
                while (job := resources.next()) is not None:
                    running.append(job)
                    waiting = [entry for entry in waiting if entry[2] != job]
        for name, capacity in CAPACITIES.items():
            used = sum(jobs[job][0].get(name, 0) for job in running)
            assert used == capacity - resources.free[name]
            assert used <= capacity
        if first in waiting and (gives or (jobs[new][1], new) > first[:2]):
            after = lacks(first[2])
            assert all(after[name] <= before[name] for name in before)
    assert not waiting
    assert list(resources.waiting()) == []


def test_a_job_that_needs_less_may_pass_one_that_waits_for_something_else() -> None:
    resources = Resources({"pool db": 1, "cpus": 4})
    assert resources.take_or_wait(0, {"pool db": 1, "cpus": 1}, rank=0)
    assert not resources.take_or_wait(1, {"pool db": 1, "cpus": 1}, rank=0)
    assert not resources.take_or_wait(2, {"pool db": 1, "cpus": 1}, rank=0)
    assert resources.take_or_wait(3, {"cpus": 2}, rank=0)
    assert not resources.take_or_wait(4, {"cpus": 1}, rank=0)  # reserved for job 1
    resources.give_back({"pool db": 1, "cpus": 1})
    assert resources.next() == 1
    assert resources.next() is None
