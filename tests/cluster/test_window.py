"""The receive window and the sender's limit, with a clock of the test's own."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.cluster.edges.window import (
    FIRST_WINDOW,
    PERIOD,
    UNIT,
    ReceiveWindow,
    SendLimit,
    compress,
    int32,
    weight_of,
)

JUST_BEFORE_THE_WRAP = (2**31 - 3) * UNIT


def acked(window: ReceiveWindow, now: int) -> int:
    limit = window.ack(now)
    assert limit is not None
    return limit


def first_ack(window: ReceiveWindow) -> int:
    window.received(UNIT)
    return acked(window, 0)


def test_a_sender_may_fill_one_unit_and_one_packet_before_the_first_ack() -> None:
    limit = SendLimit()
    packets = 0
    while limit.is_open:
        limit.sent(UNIT // 4 + 1)
        packets += 1
    assert packets == 4


def test_no_ack_is_due_before_that_unit_is_full() -> None:
    window = ReceiveWindow(3)
    window.received(UNIT - 1)
    before = window.waits_for_first_ack, window.ack(0)
    window.received(1)
    full = window.waits_for_first_ack, window.ack(0)
    assert [before, full] == [(False, None), (True, FIRST_WINDOW)]
    assert not window.waits_for_first_ack


def test_the_first_ack_only_records() -> None:
    window = ReceiveWindow(3)
    window.received(5 * UNIT)
    window.accepted(5 * UNIT)
    assert window.ack(0) == 5 + FIRST_WINDOW


@pytest.mark.parametrize("start", [0, JUST_BEFORE_THE_WRAP])
def test_a_thousand_units_accepted_per_period_bring_the_window_to_three_thousand(
    start: int,
) -> None:
    window = ReceiveWindow(3, start=start)
    first_ack(window)
    for period in range(1, 30):
        window.received(1000 * UNIT)
        window.accepted(1000 * UNIT)
        window.ack(period * PERIOD)
    assert abs(window.window - 3000) <= 2


def test_the_window_shrinks_halfway_to_its_target_when_less_is_accepted() -> None:
    window = ReceiveWindow(3)
    first_ack(window)
    window.received(500 * UNIT)
    window.accepted(100 * UNIT)
    window.ack(PERIOD)
    assert window.window == (FIRST_WINDOW + 300) // 2


def test_what_is_accepted_in_two_periods_counts_half() -> None:
    window = ReceiveWindow(3)
    first_ack(window)
    window.received(2000 * UNIT)
    window.accepted(2000 * UNIT)
    window.ack(2 * PERIOD)
    assert window.window == (FIRST_WINDOW + 3000) // 2


def test_with_nothing_waiting_the_window_does_not_shrink() -> None:
    window = ReceiveWindow(3)
    first_ack(window)
    window.accepted(UNIT)
    window.ack(PERIOD)
    assert window.held == 0
    assert window.window == FIRST_WINDOW


def test_a_limit_that_the_sender_knows_is_not_told_again() -> None:
    window = ReceiveWindow(3)
    first_ack(window)
    window.accepted(UNIT)
    assert [window.ack(PERIOD), window.ack(2 * PERIOD)] == [1 + FIRST_WINDOW, None]


@given(st.integers(), st.integers(0, 2**31 - 1))
def test_comparing_is_not_disturbed_by_the_wrap(sent: int, ahead: int) -> None:
    assert int32(compress((sent + ahead) * UNIT) - compress(sent * UNIT)) == ahead


@given(
    sizes=st.lists(st.integers(1, 40 * UNIT), min_size=20, max_size=80),
    appetite=st.lists(st.integers(0, 30), min_size=1),
    start=st.sampled_from([0, JUST_BEFORE_THE_WRAP]),
)
def test_a_sender_never_holds_more_than_the_largest_window_and_a_packet_at_the_receiver(
    sizes: list[int], appetite: list[int], start: int
) -> None:
    limit, window = SendLimit(start), ReceiveWindow(3, start=start)
    to_send, under_way, largest, period = deque(sizes), deque[int](), FIRST_WINDOW, 0
    while to_send or under_way:
        while to_send and limit.is_open:
            weight = to_send.popleft()
            limit.sent(weight)
            window.received(weight)
            under_way.append(weight)
        assert window.held <= (largest + 1) * UNIT + max(sizes)
        for _ in range(max(1, appetite[period % len(appetite)])):
            if under_way:
                window.accepted(under_way.popleft())
        period += 1
        told = window.ack(period * PERIOD)
        largest = max(largest, window.window)
        if told is not None:
            limit.acked(told)
    assert window.held == 0


def test_with_nothing_accepted_the_memory_held_is_bounded_whatever_the_sender_has() -> None:
    limit, window = SendLimit(), ReceiveWindow(3)
    for period in range(100):
        for _ in range(1000):
            if limit.is_open:
                limit.sent(10 * UNIT)
                window.received(10 * UNIT)
        told = window.ack(period * PERIOD)
        if told is not None:
            limit.acked(told)
    assert window.held <= (FIRST_WINDOW + 11) * UNIT


def test_a_packet_weighs_its_bytes_and_56_per_item() -> None:
    assert weight_of(1000, 3) == 1168
