from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.scheduling.priority_queue import PriorityQueue


def diamond() -> PriorityQueue:
    """a -> b, a -> c, b -> d, c -> d, as 0, 1, 2, 3."""
    queue = PriorityQueue()
    for job, key in enumerate([0, 1, 1, 2]):
        queue.push(job, key=key)
    return queue


def test_keys_count_the_upstream_jobs_that_have_not_finished() -> None:
    queue = diamond()
    assert queue.keys == {0: 0, 1: 1, 2: 1, 3: 2}
    assert queue.take() == 0
    queue.decrease(1)
    queue.decrease(2)
    assert queue.keys == {1: 0, 2: 0, 3: 2}
    assert queue.take() == 1
    assert queue.take() == 2
    queue.decrease(3)
    assert queue.keys == {3: 1}


def test_a_job_with_a_key_above_0_is_not_taken() -> None:
    queue = diamond()
    queue.take()
    assert queue.take() is None
    assert len(queue) == 3


def test_ties_go_by_rank_then_by_arrival() -> None:
    queue = PriorityQueue()
    for job, rank in enumerate([2, 1, 2, 1, 0]):
        queue.push(job, key=0, rank=rank)
    assert [queue.take() for _ in range(5)] == [4, 1, 3, 0, 2]


def test_a_removed_job_is_not_taken_and_may_come_back() -> None:
    queue = PriorityQueue()
    queue.push(1, key=0)
    queue.push(2, key=0)
    queue.remove(1)
    queue.push(1, key=0)
    assert [queue.take(), queue.take(), queue.take()] == [2, 1, None]


def test_a_key_cannot_fall_below_0() -> None:
    queue = diamond()
    with pytest.raises(ValueError, match="counted twice"):
        queue.decrease(0)


def test_a_job_cannot_be_in_the_queue_twice() -> None:
    queue = diamond()
    with pytest.raises(ValueError, match="already"):
        queue.push(2, key=0)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_the_queue_behaves_like_a_list_that_is_searched_each_time(
    jobs: list[tuple[int, int]], random: object
) -> None:
    queue = PriorityQueue()
    model: dict[int, list[int]] = {}  # job: [key, rank, arrival number at key 0]
    clock = 0
    for job, (key, rank) in enumerate(jobs):
        queue.push(job, key=key, rank=rank)
        clock += 1
        model[job] = [key, rank, clock]
    while model:
        action = random.choice(["take", "decrease", "remove"])  # type: ignore[attr-defined]
        job = random.choice(sorted(model))  # type: ignore[attr-defined]
        if action == "take":
            ready = [
                (rank, arrival, job) for job, (key, rank, arrival) in model.items() if key == 0
            ]
            expected = min(ready)[2] if ready else None
            assert queue.take() == expected
            if expected is not None:
                del model[expected]
        elif action == "decrease" and model[job][0] > 0:
            clock += 1
            model[job][0] -= 1
            model[job][2] = clock
            assert queue.decrease(job, rank=model[job][1]) == (model[job][0] == 0)
        elif action == "remove":
            queue.remove(job)
            del model[job]
        assert queue.keys == {job: key for job, (key, _, _) in model.items()}
        assert queue.ready_count == sum(key == 0 for key, _, _ in model.values())
