from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.columns.ahead import ahead


@given(st.lists(st.integers(1, 9)), st.integers(1, 4), st.integers(1, 30))
def test_results_come_in_the_order_of_the_calls(
    sizes: list[int], threads: int, most_bytes: int
) -> None:
    calls = [(size, lambda number=number: number) for number, size in enumerate(sizes)]
    assert list(ahead(calls, threads=threads, most_bytes=most_bytes)) == list(range(len(sizes)))


def test_the_next_call_is_made_while_the_last_result_is_used() -> None:
    second_ran = threading.Event()
    results = ahead([(1, lambda: None), (1, second_ran.set), (1, lambda: None)], threads=2)
    next(results)
    assert second_ran.wait(10)
    results.close()


def test_not_more_is_read_ahead_than_fits() -> None:
    begun: list[int] = []
    results = ahead(_recorded(begun, size=10), threads=4, most_bytes=10)
    assert next(results) == 0
    assert next(results) == 1
    assert 3 not in begun
    results.close()


def test_one_thread_calls_nothing_before_its_turn() -> None:
    begun: list[int] = []
    assert next(ahead(_recorded(begun, size=1), threads=1)) == 0
    assert begun == [0]


def test_an_error_is_raised_at_its_turn() -> None:
    results = ahead([(1, lambda: 1), (1, lambda: 1 // 0)], threads=2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def _recorded(begun: list[int], size: int) -> Iterator[tuple[int, Callable[[], int]]]:
    def call(number: int) -> int:
        begun.append(number)
        return number

    for number in range(9):
        yield size, lambda number=number: call(number)  # type: ignore[misc]
